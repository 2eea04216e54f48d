"""Whatever waits, leaves or is asked for in advance: the API server takes every NodeClaim that is planned for it.

And whoever asks for what no NodeClaim can say keeps nobody else waiting. What the API server takes is said by the
models from which its definitions are made.
"""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.activities.provisioning.create_node_claims import new_claim
from dovetail.adapters.kubernetes_json.rendering.claims import render_claim
from dovetail.api.karpenter.node_claim import NodeClaim
from dovetail.api.runtime_checks import is_label_value, is_qualified_name
from dovetail.api.validation import parse
from dovetail.disruption.rounds import never
from dovetail.messages.plans import ProvisioningPlan
from dovetail.messages.requests import CreateRequest
from dovetail.messages.sizes import encoded_bytes
from dovetail.model import names
from dovetail.model.objects.workloads import Volume, VolumeClaim
from dovetail.model.pods import Expression, NodeTerm, Pod, PodShape, VolumeUse
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    one_of,
    spread,
)
from worlds.disruption import NOW

SLOW = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))

MOST_CLAIM_BYTES = 1_000_000  # the API server's store takes half as much again
GOOD = 3

OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"])
KEYS = st.sampled_from(
    [
        names.ZONE,
        names.ARCH,
        names.CAPACITY_TYPE,
        names.INSTANCE_TYPE,
        names.WINDOWS_BUILD,
        names.NODE_POOL,
        names.HOSTNAME,
        names.REGISTERED,
        "beta.kubernetes.io/arch",
        "karpenter.k8s.aws/instance-colour",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/ec2nodeclass",
        "below.karpenter.k8s.aws/x",
        "foo-karpenter.sh/x",
        "karpenter.sh",
        "karpenter.sh/unknown",
        "team",
        "tier",
        "example.com/" + "n" * 63,
        "example.com/" + "n" * 64,
        ".".join(["d" * 62] * 4) + "dd/" + "n" * 63,
        ".".join(["d" * 62] * 4) + "/" + "n" * 63,
        "Example.com/x",
        "-bad-",
        "",
    ]
)
VALUES = st.lists(
    st.sampled_from(
        ["a", "b", "z1", "z2", "amd64", "spot", "small", "large", "0", "1", "-1", "007", "9" * 30, "a b", ""]
    )
    | st.sampled_from(["x" * 63, "x" * 64, "line\n", "²", str(2**63 - 1), str(2**63)]),
    max_size=3,
).map(tuple)


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Expression, ...]:
    """A few of all kinds, or very many of one."""
    one = st.builds(Expression, key=KEYS, operator=OPERATORS, values=VALUES)
    if draw(st.integers(0, 3)):
        return tuple(draw(st.lists(one, max_size=3)))
    first, count, values = draw(st.integers(0, 100)), draw(st.sampled_from([20, 45, 60, 150])), draw(st.integers(1, 9))
    return tuple(
        Expression(key=f"k{n}", operator="NotIn", values=tuple(f"{n}.{m}" + "v" * 40 for m in range(values * 4)))
        for n in range(first, first + count)
    )


@st.composite
def shapes(draw: st.DrawFn) -> PodShape:
    """What a pod may ask of its node."""
    terms = st.builds(NodeTerm, expressions=expressions(), weight=st.sampled_from([1, 50]))
    chosen = draw(st.sampled_from(["", "", "zone", "team", "hostname", "karpenter.k8s.aws/instance-colour"]))
    return a_shape(
        {"app": "hostile"},
        node_selector=tuple(draw(st.dictionaries(KEYS, VALUES.map(lambda v: "".join(v[:1])), max_size=2)).items()),
        required_terms=tuple(draw(st.lists(terms, max_size=2))),
        preferred_terms=tuple(draw(st.lists(terms, max_size=2))),
        spread=(spread(chosen, app="hostile"),) if chosen else (),
        volumes=(VolumeUse(claim_name="data"),) if draw(st.integers(0, 4)) == 0 else (),
    )


@st.composite
def hostile_pods(draw: st.DrawFn) -> list[Pod]:
    """Pods that wait, and pods of a node that leaves."""
    found = []
    for number, shape in enumerate(draw(st.lists(shapes(), min_size=1, max_size=5))):
        made = a_bound_pod if draw(st.integers(0, 3)) == 0 else a_waiting_pod
        pod = (
            a_bound_pod(f"h{number}", "n1", shape=shape)
            if made is a_bound_pod
            else a_waiting_pod(f"h{number}", shape=shape)
        )
        names_of_nothing = draw(st.sampled_from([0, 0, 0, 40, 200]))
        nothing = {f"example.com/{number}-{n}": 0 for n in range(names_of_nothing)}
        found.append(replace(pod, requests={**pod.requests, **nothing}))
    return found


@st.composite
def pools(draw: st.DrawFn) -> NodePool:
    """A sound pool, perhaps with labels of its own and minimum values."""
    exists = Expression(key="team", operator="Exists")
    zones = replace(one_of(names.ZONE, "z1", "z2"), min_values=2)
    kinds = replace(one_of(names.CAPACITY_TYPE, "spot", "on-demand"), min_values=2)
    types = Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=2)
    chosen = draw(st.lists(st.sampled_from([exists, one_of("tier", "a", "b"), zones, kinds, types]), unique=True))
    return a_general_pool(requirements=tuple(chosen))


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Good pods beside others; a node that leaves; a volume that may be anywhere."""
    node, claim = a_joined_pair("n1")
    terms = draw(st.lists(st.builds(NodeTerm, expressions=expressions()), max_size=2))
    volume = Volume(name="pv", node_terms=tuple(terms))
    data = VolumeClaim(name="data", namespace="default", volume_name="pv", bind_completed=True, phase="Bound")
    good = [a_waiting_pod(f"good-{number}") for number in range(GOOD)]
    return a_snapshot(
        [*good, *draw(hostile_pods())],
        [(node, replace(claim, deleting_since=NOW))],
        [draw(pools())],
        volumes={"pv": volume},
        volume_claims={"default/data": data},
    )


def claims_of(plan: ProvisioningPlan) -> list[Json]:
    """The NodeClaims of a plan as they would be written."""
    request = CreateRequest(plan_id="p", proposed=plan.proposed, type_lists=plan.type_lists)
    return [render_claim(new_claim(request, index)) for index in range(len(plan.proposed))]


POLICIES = (st.sampled_from(["Strict", "BestEffort"]), st.sampled_from(["Respect", "Ignore"]))


def judge(snapshot: Snapshot, min_values: str, preferences: str) -> None:
    """Plan, and hand each NodeClaim to what the API server would hand it to."""
    chosen = PlacementSettings(min_values_policy=min_values, preference_policy=preferences)  # type: ignore[arg-type]
    plan, _ = plan_provisioning(snapshot, chosen, never)

    for claim in claims_of(plan):
        parse(NodeClaim, claim)
        labels = claim["metadata"]["labels"]
        assert [key for key in labels if not is_qualified_name(key)] == []
        assert [value for value in labels.values() if not is_label_value(value)] == []
        assert encoded_bytes(claim) < MOST_CLAIM_BYTES


@settings(SLOW, max_examples=60)
@given(worlds(), *POLICIES)
def test_every_claim_of_a_plan_is_one_that_its_definition_takes(
    snapshot: Snapshot, min_values: str, preferences: str
) -> None:
    judge(snapshot, min_values, preferences)


@pytest.mark.soak
@settings(SLOW, max_examples=10_000)
@given(worlds(), *POLICIES)
def test_the_same_holds_for_ten_thousand_clusters(snapshot: Snapshot, min_values: str, preferences: str) -> None:
    judge(snapshot, min_values, preferences)


@SLOW
@given(worlds())
def test_good_pods_get_their_node_whoever_is_planned_beside_them(snapshot: Snapshot) -> None:
    plan, placement = plan_provisioning(snapshot, PlacementSettings(), never)

    planned = {pod.name for node in plan.proposed for pod in node.pods}
    assert {f"good-{number}" for number in range(GOOD)} <= planned, [r.reasons for r in placement.refused]
