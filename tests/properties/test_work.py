"""What one object costs a pass: twice as long a list takes about twice as many steps, for whoever waits beside it.

Steps are counted, not timed: lines of code that the pass runs. A list whose items are all asked about all of another
list's would take four times as many.
"""

from collections.abc import Callable
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.objects.workloads import StorageClass, VolumeClaim
from dovetail.model.pods import Expression, LabelSelector, Pod, SpreadConstraint, Toleration, VolumeUse
from dovetail.model.snapshot import Snapshot
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import a_bound_pod, a_joined_pair, a_shape, a_snapshot, a_waiting_pod, near, one_of, term
from tests.properties.counted_lines import with_lines

pytestmark = pytest.mark.slow

MOST = 2.4  # times as many steps for twice as much
ZONES = (("z1", "z2"), ("z2", "z3"))


def steps(snapshot: Snapshot) -> int:
    """The lines that a pass runs; all pods that can have a node must get one."""
    placement, count = with_lines(lambda: place(Index(snapshot, PlacementSettings())))
    places = [node.pods for node in placement.new] + list(placement.existing.values())
    assert "good" in {pod.name for pods in places for pod in pods}
    return count


def beside(pods: list[Pod], **fields: Any) -> Snapshot:
    return a_snapshot([*pods, a_waiting_pod("good")], [a_joined_pair("n1")], **fields)


def unlike(number: int, first: int = 0, key: str = names.HOSTNAME) -> tuple[Any, ...]:
    """Anti-affinity terms of which no two are alike."""
    return tuple(near(key, **{f"a{first + n}": "b"}) for n in range(number))


def apart(number: int) -> SpreadConstraint:
    """A spread over zones like no other."""
    selector = LabelSelector(expressions=(one_of(f"a{number}", "b"),))
    return SpreadConstraint(topology_key=names.ZONE, max_skew=1, when_unsatisfiable="DoNotSchedule", selector=selector)


def sharing(number: int, first: int) -> tuple[Any, ...]:
    """The same, where all selectors ask for one label beside their own."""
    return tuple(near(names.HOSTNAME, app="x", **{f"z{first + n}": "b"}) for n in range(number))


def volumes(number: int) -> Snapshot:
    uses = tuple(VolumeUse(claim_name=f"v{n}") for n in range(number))
    claims = [VolumeClaim(name=use.claim_name, namespace="default", storage_class="late") for use in uses]
    late = StorageClass(
        name="late", provisioner="d", immediate=False, topologies=tuple((one_of(names.ZONE, *z),) for z in ZONES)
    )
    return beside(
        [a_waiting_pod("p", shape=a_shape(volumes=uses))],
        volume_claims={f"default/{claim.name}": claim for claim in claims},
        storage_classes={"late": late},
    )


def one(**fields: Any) -> Snapshot:
    return beside([a_waiting_pod("p", shape=a_shape(**fields))])


CASES: dict[str, tuple[int, Callable[[int], Snapshot]]] = {
    "pods that keep unlike ones away": (
        40,
        lambda n: beside([a_waiting_pod(f"p{i}", shape=a_shape(anti_affinity=unlike(10, 10 * i))) for i in range(n)]),
    ),
    "pods that keep away others of their label": (
        40,
        lambda n: beside(
            [a_waiting_pod(f"p{i}", shape=a_shape({"app": "x"}, anti_affinity=sharing(10, 10 * i))) for i in range(n)]
        ),
    ),
    "bound pods that keep unlike ones away": (
        40,
        lambda n: a_snapshot(
            [
                a_waiting_pod("good"),
                *(a_bound_pod(f"b{i}", "n1", shape=a_shape(anti_affinity=unlike(10, 10 * i))) for i in range(n)),
                *(
                    a_waiting_pod(f"p{i}", shape=a_shape({f"a{i}": "c"}, anti_affinity=unlike(2, 9 * i)))
                    for i in range(n)
                ),
            ],
            [a_joined_pair("n1")],
        ),
    ),
    "pods that would be near unlike ones": (
        40,
        lambda n: beside(
            [
                a_waiting_pod(f"p{i}", shape=a_shape({f"a{i}": "b"}, affinity=(near(names.ZONE, **{f"a{i}": "b"}),)))
                for i in range(n)
            ]
        ),
    ),
    "anti-affinity": (200, lambda n: one(anti_affinity=unlike(n))),
    "anti-affinity over zones": (200, lambda n: one(anti_affinity=unlike(n, key=names.ZONE))),
    "affinity": (200, lambda n: one(affinity=unlike(n))),
    "spread": (200, lambda n: one(spread=tuple(apart(i) for i in range(n)))),
    "preferred anti-affinity": (200, lambda n: one(preferred_anti_affinity=unlike(n))),
    "preferred terms": (
        200,
        lambda n: one(preferred_terms=tuple(term(one_of(f"k{i}", "v"), weight=1) for i in range(n))),
    ),
    "required terms": (200, lambda n: one(required_terms=tuple(term(one_of(f"k{i}", "v")) for i in range(n)))),
    "values": (2000, lambda n: one(required_terms=(term(one_of(names.ZONE, *(f"z{i}" for i in range(n)))),))),
    "expressions": (
        20,
        lambda n: one(
            required_terms=(term(*(Expression(key=f"k{i}", operator="NotIn", values=("v",)) for i in range(n))),)
        ),
    ),
    "tolerations": (
        200,
        lambda n: one(tolerations=tuple(Toleration(key=f"k{i}", operator="Exists") for i in range(n))),
    ),
    "labels": (200, lambda n: one(labels={f"k{i}": "v" for i in range(n)}, anti_affinity=unlike(3))),
    "volumes": (20, volumes),
}


@pytest.mark.parametrize("case", CASES)
def test_twice_as_long_a_list_costs_about_twice_as_much(case: str) -> None:
    size, world = CASES[case]
    steps(world(2 * size))  # what is kept from one pass to the next is there

    once, twice, nothing = steps(world(size)), steps(world(2 * size)), steps(world(0))

    assert twice - nothing <= MOST * (once - nothing), (nothing, once, twice)
