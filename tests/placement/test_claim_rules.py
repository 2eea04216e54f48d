"""What no NodeClaim can say is refused to the pod that asks for it, and to nobody else (PLQ-60 to PLQ-63)."""

from dataclasses import replace

import pytest

from dovetail.disruption.rounds import never
from dovetail.model import names
from dovetail.model.objects.workloads import Volume, VolumeClaim
from dovetail.model.places.placements import Placement
from dovetail.model.pods import Expression, NodeTerm, Pod, PodShape, VolumeUse
from dovetail.model.scheduling.requirements import requirement
from dovetail.placement.facts.claim_rules import bytes_of, entries_of
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    groups,
    one_of,
    placed,
    term,
)
from worlds.disruption import NOW

COLOUR = "karpenter.k8s.aws/instance-colour"
NOT_RED = Expression(key=COLOUR, operator="NotIn", values=("red",))
LONGEST = ".".join(["d" * 62] * 4) + "dd/" + "n" * 63


def requiring(*expressions: Expression) -> PodShape:
    return a_shape(required_terms=(term(*expressions),))


def not_in(count: int, first: int = 0, value: str = "v") -> tuple[Expression, ...]:
    return tuple(Expression(key=f"k{n}", operator="NotIn", values=(value,)) for n in range(first, first + count))


def beside_a_good_one(pod: Pod, **world: object) -> Placement:
    return placed(a_snapshot([a_waiting_pod("good"), pod], **world))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (NOT_RED, f'label {COLOUR}: spec.requirements.key: label domain "karpenter.k8s.aws" is restricted'),
        (
            Expression(key="foo-karpenter.sh/x", operator="NotIn", values=("a",)),
            'label foo-karpenter.sh/x: spec.requirements.key: label domain "karpenter.sh" is restricted',
        ),
        (
            Expression(key="team", operator="Lt", values=("0",)),
            "label team: spec.requirements: requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single",
        ),
        (Expression(key=LONGEST, operator="DoesNotExist"), "spec.requirements.key: String should have at most 316"),
    ],
)
def test_a_requirement_that_the_definition_refuses_is_refused_alone(expression: Expression, says: str) -> None:
    """PLQ-60: by every required term, as for what Karpenter looks at (PLC-23)."""
    shape = a_shape(required_terms=(term(one_of(names.ZONE, "z1")), term(expression)))

    found = beside_a_good_one(a_waiting_pod("bad", shape=shape))

    assert groups(found) == [["good"]]
    [ignored] = found.ignored
    assert (ignored.pod.name, ignored.silent, says in ignored.why) == ("bad", False, True), ignored.why
    assert ignored.why.startswith("no NodeClaim can require label")


def test_the_label_of_the_node_class_may_be_selected() -> None:
    """It lies in the cloud's domain and is well known to nobody but the definition."""
    shape = a_shape(node_selector=(("karpenter.k8s.aws/ec2nodeclass", "default"),))

    assert groups(beside_a_good_one(a_waiting_pod("p", shape=shape))) == [["good", "p"]]


def test_as_many_labels_and_bytes_as_a_pod_may_bring_are_taken_and_one_more_is_not() -> None:
    """PLQ-61."""
    long = replace(not_in(1)[0], values=tuple(f"{n:04}" + "v" * 59 for n in range(260)))
    longer = replace(long, values=(*long.values, "w", "ww"))
    shapes = {
        "labels": requiring(*not_in(50)),
        "too-many-labels": requiring(*not_in(51)),
        "bytes": requiring(long),
        "too-many-bytes": requiring(longer),
    }
    snapshot = a_snapshot([a_waiting_pod(name, shape=shape) for name, shape in shapes.items()])

    found = placed(snapshot)

    assert {i.pod.name: i.why for i in found.ignored} == {
        "too-many-labels": "it selects nodes by 51 labels in one term, more than 50",
        "too-many-bytes": "its node selector and one term of its node affinity have 16385 bytes, more than 16384",
    }
    assert sorted(name for group in groups(found) for name in group) == ["bytes", "labels"]


def test_a_pod_that_asks_for_nothing_of_very_many_resources_is_refused_alone() -> None:
    """PLQ-61: a claim asks for each of them by its name."""
    bad = a_waiting_pod("bad")
    bad = replace(bad, requests={**bad.requests, **{f"example.com/{n}": 0 for n in range(50)}})

    found = beside_a_good_one(bad)

    assert groups(found) == [["good"]]
    assert [i.why for i in found.ignored] == ["it asks for 53 resources, more than 50"]


def test_what_many_pods_ask_nothing_of_does_not_make_a_claim_large() -> None:
    """PLQ-62: each of them may name as much."""
    pods = [a_waiting_pod(f"p{n}") for n in range(4)]
    pods = [replace(p, requests={**p.requests, **{f"example.com/{p.name}-{n}": 0 for n in range(40)}}) for p in pods]

    [node] = placed(a_snapshot(pods)).new

    assert (len(node.pods), sorted(node.requests)) == (4, ["cpu", "memory", "pods"])


def test_pods_that_together_ask_for_more_than_a_claim_can_say_get_nodes_of_their_own() -> None:
    """PLQ-62."""
    pods = [a_waiting_pod(f"p{n}", shape=requiring(*not_in(40, first=n * 40))) for n in range(3)]

    found = placed(a_snapshot(pods))

    assert groups(found) == [["p0", "p1"], ["p2"]]
    assert all(entries_of(node.requirements) <= 100 for node in found.new)


def test_pods_whose_values_together_are_too_large_get_nodes_of_their_own() -> None:
    """PLQ-62: labels that they share count once, values do not."""
    [shared] = not_in(1)
    pods = [
        a_waiting_pod(
            f"p{n}", shape=requiring(replace(shared, values=tuple(f"{n}-{m}" + "v" * 50 for m in range(250))))
        )
        for n in range(6)
    ]

    found = placed(a_snapshot(pods))

    assert [len(group) for group in groups(found)] == [4, 2]
    assert all(bytes_of(node.requirements) <= 64 * 1024 for node in found.new)


def test_a_pool_that_asks_for_very_much_itself_still_makes_nodes() -> None:
    """Only what pods bring is weighed against the limits."""
    own = tuple(Expression(key=f"own{n}", operator="Exists") for n in range(97))
    pods = [a_waiting_pod("plain"), a_waiting_pod("choosy", shape=requiring(*not_in(2)))]

    found = placed(a_snapshot(pods, pools=[a_general_pool(requirements=own)]))

    assert groups(found) == [["plain"]]
    assert [p.conflict for r in found.refused for p in r.pools] == [
        "with it the NodeClaim would have more requirements than the API server takes"
    ]


def test_a_preference_that_no_claim_can_say_is_given_up() -> None:
    """PLQ-60: Karpenter writes it on the claim."""
    shape = a_shape(preferred_terms=(term(NOT_RED, weight=9), term(one_of(names.ZONE, "z2"), weight=1)))

    [node] = beside_a_good_one(a_waiting_pod("p", shape=shape)).new

    assert sorted(pod.name for pod in node.pods) == ["good", "p"]
    assert COLOUR not in node.requirements
    assert node.requirements[names.ZONE] == requirement(names.ZONE, "In", ("z2",))


def test_a_pod_of_a_leaving_node_that_no_claim_can_suit_goes_to_nodes_that_exist_alone() -> None:
    """It was bound there by the kube-scheduler; nobody looks at such a pod when it is planned for (PLC-30)."""
    node, claim = a_joined_pair("n1")
    leaving = (node, replace(claim, deleting_since=NOW))
    bound = a_bound_pod("bound", "n1", shape=requiring(NOT_RED))

    alone = placed(a_snapshot([a_waiting_pod("good"), bound], [leaving]))
    with_room = placed(a_snapshot([bound], [leaving, a_joined_pair("n2")]))

    assert groups(alone) == [["good"]]
    assert ["no NodeClaim can require label" in p.conflict for r in alone.refused for p in r.pools] == [True]
    assert [[pod.name for pod in pods] for pods in with_room.existing.values()] == [["bound"]]


def test_volumes_that_no_claim_can_reach_are_named_and_another_place_of_theirs_is_taken() -> None:
    claims = {"default/data": VolumeClaim(name="data", namespace="default", volume_name="pv", bind_completed=True)}
    pod = a_waiting_pod("p", shape=a_shape(volumes=(VolumeUse(claim_name="data"),)))

    def with_terms(*terms: NodeTerm) -> Placement:
        volumes = {"pv": Volume(name="pv", node_terms=terms)}
        return beside_a_good_one(pod, volumes=volumes, volume_claims=claims)

    refused = with_terms(term(NOT_RED))
    either = with_terms(term(NOT_RED), term(one_of(names.ZONE, "z3")))

    assert groups(refused) == [["good"]]
    assert [p.reason for r in refused.refused for p in r.pools] == ["volume_requirements"]
    assert "no NodeClaim can require label" in refused.refused[0].pools[0].conflict
    assert groups(either) == [["good", "p"]]


@pytest.mark.parametrize(("zones", "nodes"), [(2, 1), (3, 0)])
def test_values_that_a_requirement_excludes_do_not_count_for_its_minimum(zones: int, nodes: int) -> None:
    """PLC-122: the types have three zones, and two are left."""
    pool = a_general_pool(
        requirements=(Expression(key=names.ZONE, operator="NotIn", values=("z1",), min_values=zones),)
    )

    assert len(placed(a_snapshot([a_waiting_pod("web")], pools=[pool])).new) == nodes


@pytest.mark.parametrize(("key", "values"), [(names.ZONE, ("z1", "z2")), (names.CAPACITY_TYPE, ("spot", "on-demand"))])
@pytest.mark.parametrize(("policy", "expected"), [("Strict", [["good"]]), ("BestEffort", [["bad", "good"]])])
def test_a_pod_that_leaves_a_claim_fewer_values_than_its_minimum_keeps_nobody_waiting(
    key: str, values: tuple[str, ...], policy: str, expected: list[list[str]]
) -> None:
    """PLQ-63: the types have them all, and the claim may list one only."""
    pool = a_general_pool(requirements=(replace(one_of(key, *values), min_values=2),))
    bad = a_waiting_pod("bad", shape=a_shape(node_selector=((key, values[0]),)))
    settings = PlacementSettings(min_values_policy=policy)  # type: ignore[arg-type]

    plan, found = plan_provisioning(a_snapshot([a_waiting_pod("good"), bad], pools=[pool]), settings, never)

    assert groups(found) == expected
    assert [p.conflict for r in found.refused for p in r.pools] == (
        [f"minValues requirement is not met: {key} has 1 of 2"] if policy == "Strict" else []
    )
    for node in plan.proposed:
        assert all(len(e.values) >= (e.min_values or 0) for e in node.requirements if e.operator == "In")
