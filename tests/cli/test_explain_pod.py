"""`dovetail explain pod`: the reason, what it conflicts with, and only helps that help."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from dovetail.answers.explain.explain_pod import explain_pod, find_pod
from dovetail.answers.explain.explain_pod_text import pod_text
from dovetail.answers.explain.pod_words import POOL_WORDS
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import with_memory
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.status.fleet_facts import FleetFacts
from dovetail.answers.status.needs import needs_of
from dovetail.answers.status.nodes import pods_of
from dovetail.messages.plans import ClaimRefusal
from dovetail.messages.states import SchedulerState
from dovetail.model.places.placements import PoolRefusal, Reason
from dovetail.model.pools import Catalogue
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.worlds import a_ready_pool, a_world, looked
from tests.placement.builders import a_bound_pod
from tests.placement.test_kept_places import joining
from worlds.manifests import node_manifest, pod_manifest, pool_manifest

ML = [{"key": "team", "value": "ml", "effect": "NoSchedule"}]


def test_every_reason_of_the_closed_list_has_its_words() -> None:
    assert set(POOL_WORDS) == set(get_args(Reason))


async def test_the_answer_for_a_pod_that_fits_a_pool_names_its_new_node(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web", cpu="1500m"))

    answer = explain_pod(await looked(world), "default/web")

    assert (answer.state, answer.pool, answer.types[0]) == ("new_node", "default", "c-2x-amd64-linux")
    assert "a new node of NodePool default" in pod_text(answer)


async def test_a_taint_is_named_and_the_toleration_that_would_help(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool("gpu", taints=ML), pod_manifest("web"))

    answer = explain_pod(await looked(world), "web")

    assert answer.state == "refused"
    assert answer.pools == (
        PoolRefusal(
            pool="gpu",
            reason="taints",
            conflict="did not tolerate taint team=ml:NoSchedule",
            remedy="a toleration on the pod, or no such taint on the pool",
        ),
    )
    assert [h.change for h in answer.helps] == ["with a toleration for team=ml:NoSchedule (NodePool gpu)"]


async def test_a_help_that_leads_to_the_next_refusal_is_not_given(tmp_path: Path) -> None:
    """Two things stand in the way: the taint and the label; taking one away alone does not help."""
    world = a_world(tmp_path, a_ready_pool("gpu", taints=ML), pod_manifest("web", nodeSelector={"disk": "ssd"}))

    answer = explain_pod(await looked(world), "web")

    assert answer.helps == ()
    assert "no single change" in pod_text(answer)


async def test_a_label_that_no_pool_has_is_named_with_the_selector_to_drop(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web", nodeSelector={"disk": "ssd"}))

    answer = explain_pod(await looked(world), "web")

    assert [(p.reason, p.conflict) for p in answer.pools] == [
        ("undefined_label", 'label "disk" does not have known values')
    ]
    assert [h.change for h in answer.helps] == ["without the node selector disk=ssd"]


async def test_the_answer_for_a_pod_larger_than_every_type_names_the_largest(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("giant", cpu="1000"))

    answer = explain_pod(await looked(world), "giant")

    assert [p.reason for p in answer.pools] == ["it_fits"]
    assert [h.change for h in answer.helps] == [
        "with smaller requests (the largest instance types hold cpu 255900m, memory 2Ti)"
    ]


async def test_limits_that_other_pods_use_up_do_not_hide_the_pods_own_trouble(tmp_path: Path) -> None:
    pool = a_ready_pool(limits={"cpu": "2"})
    world = a_world(
        tmp_path, pool, pod_manifest("first", cpu="1500m"), pod_manifest("web", nodeSelector={"disk": "ssd"})
    )

    answer = explain_pod(await looked(world), "web")

    assert [p.reason for p in answer.pools] == ["limits"]
    assert [p.reason for p in answer.pools_alone] == ["undefined_label"]


async def test_the_answer_for_a_pod_kept_out_by_limits_is_to_raise_them(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(limits={"cpu": "2"}), pod_manifest("web", cpu="3"))

    answer = explain_pod(await looked(world), "web")

    assert [p.reason for p in answer.pools] == ["it_fits"]  # of the types that the limits leave
    assert "with higher limits on NodePool default (now cpu 2, in use nothing)" in [h.change for h in answer.helps]


async def test_existing_nodes_are_counted_by_what_rules_them_out(tmp_path: Path) -> None:
    world = a_world(
        tmp_path,
        a_ready_pool("gpu", taints=ML),
        node_manifest("small", cpu="1"),
        node_manifest("closed", taints=[{"key": "x", "effect": "NoSchedule"}]),
        pod_manifest("web", cpu="2"),
    )

    answer = explain_pod(await looked(world), "web")

    assert dict(answer.existing) == {"taints": 1, "it_fits": 1}
    assert "1  have a taint that it does not tolerate" in pod_text(answer)


async def test_a_pool_that_is_not_ready_is_named_although_it_refuses_nothing(tmp_path: Path) -> None:
    world = a_world(tmp_path, pool_manifest("fresh"), pod_manifest("web"))

    answer = explain_pod(await looked(world), "web")

    assert answer.state == "ignored"
    assert answer.pools_left_out == (("fresh", "it is not ready: no worker has judged it yet"),)


async def test_a_pool_whose_class_is_not_ready_says_what_stands_on_it_and_where_to_mend_it(tmp_path: Path) -> None:
    pool = a_ready_pool()
    of_class = next(c for c in pool["status"]["conditions"] if c["type"] == "NodeClassReady")
    of_class |= {"status": "False", "reason": "UnhealthyDependents", "message": "SubnetsReady: nothing was found"}
    next(c for c in pool["status"]["conditions"] if c["type"] == "Ready")["status"] = "False"
    world = a_world(tmp_path, pool, pod_manifest("web"))

    found = await looked(world)
    [(name, why)] = explain_pod(found, "web").pools_left_out
    [need] = needs_of(FleetFacts.of(found.snapshot), ())

    kind = pool["spec"]["template"]["spec"]["nodeClassRef"]
    command = f"kubectl describe {kind['kind'].lower()}.{kind['group']} {kind['name']}"
    words = "NodeClassReady: SubnetsReady: nothing was found"
    assert (name, why) == ("default", f"it is not ready: {words} → {command}")
    assert (need.what, need.command) == (f"not ready: {words}", command)

    unpriced = replace(found.snapshot, catalogues={"default": Catalogue(types=(), error="no subnets in its status")})
    assert needs_of(FleetFacts.of(unpriced), ()) == (need,), "one fault of one object is one line"


async def test_a_pod_that_runs_waits_for_nothing(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), node_manifest("n1"), pod_manifest("web"))

    answer = explain_pod(await looked(world), "web")

    assert (answer.state, answer.node) == ("runs", "n1")


async def test_without_the_scheduler_the_answer_says_what_it_does_not_know(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web"))

    answer = explain_pod(await looked(world), "web")

    assert any("no Temporal server at" in note for note in answer.notes)


async def test_a_name_that_no_pod_has_is_one_line(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())

    with pytest.raises(CommandFailed, match="default/nope: there is no such pod"):
        explain_pod(await looked(world), "default/nope")


async def test_an_unreadable_pod_is_named_as_such(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())
    body = {**pod_manifest("bad"), "spec": {"containers": [{"resources": {"requests": {"cpu": "many"}}}]}}
    body["metadata"] = {**body["metadata"], "uid": "u1"}
    world.put_raw(body)

    with pytest.raises(CommandFailed, match="default/bad: the pod cannot be read"):
        explain_pod(await looked(world), "default/bad")


async def test_a_pod_for_which_a_place_is_kept_is_told_its_node(tmp_path: Path) -> None:
    """PLQ-36: until its node has been ready for ten seconds; then it is placed like any other."""
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web"))
    look = await looked(world)
    [pod] = look.snapshot.pods.values()
    pod, (node, claim) = replace(pod, nominated_node="n1"), joining(pod)
    here = replace(look.snapshot, pods={pod.uid: pod}, nodes={node.name: node}, claims={claim.name: claim})

    answer = explain_pod(replace(look, snapshot=here), "default/web")

    assert (answer.state, answer.node, answer.claim) == ("place_kept", "n1", claim.name)
    assert "node n1 is kept for it" in pod_text(answer)
    twin = a_bound_pod("twin", "n1", cpu="1900m")
    answer = explain_pod(replace(look, snapshot=replace(here, pods={pod.uid: pod, twin.uid: twin})), "default/web")
    assert answer.state == "new_node"  # another has taken its room
    others = replace(here, claims={claim.name: replace(claim, annotations={})})
    answer = explain_pod(replace(look, snapshot=others), "default/web")
    assert (answer.state, answer.node) == ("with_scheduler", "n1")
    assert "the kube-scheduler makes room for it on n1" in pod_text(answer)


async def test_a_pod_that_no_claim_can_suit_is_promised_no_node(tmp_path: Path) -> None:
    """PLQ-60: beside a good one, which gets its own."""
    colour = {"key": "karpenter.k8s.aws/instance-colour", "operator": "NotIn", "values": ["red"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [colour]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("slip", affinity=affinity), pod_manifest("good"))
    look = await looked(world)

    slip, good = explain_pod(look, "default/slip"), explain_pod(look, "default/good")

    assert (slip.state, good.state, good.together_with) == ("ignored", "new_node", 0)
    assert slip.says == (
        "it takes no part in provisioning: no NodeClaim can require label karpenter.k8s.aws/instance-colour: "
        'spec.requirements.key: label domain "karpenter.k8s.aws" is restricted'
    )
    assert slip.says in pod_text(slip)


async def test_a_pod_whose_claim_the_api_server_refuses_is_promised_no_node(tmp_path: Path) -> None:
    """What the Scheduler remembers of refusals is what `explain`, `plan` and `status` say."""
    look = await looked(a_world(tmp_path, a_ready_pool(), pod_manifest("web"), pod_manifest("other")))
    uid, fresh = find_pod(look, "web").uid, find_pod(look, "other").uid
    refusal = ClaimRefusal(pool="default", why="NodeClaim/x: the policy says no", pods=(uid, "gone"))
    state = SchedulerState(cluster="c", refused_pods=(uid, fresh), claim_refusals=(refusal,))
    look = replace(look, snapshot=with_memory(look.snapshot, state))
    why = "the API server refuses a NodeClaim of NodePool default for it: NodeClaim/x: the policy says no"

    assert explain_pod(look, "web").says == f"nothing is planned for it: {why}"
    assert "is asked for again" in explain_pod(look, "other").says
    plan = plan_now(look)
    assert plan.new_nodes == () and why in {refusal.reason for refusal in plan.ignored_pods}
    needs = {need.about: need.what for need in needs_of(FleetFacts.of(look.snapshot), ())}
    assert needs["default/web"].endswith(f": {why}")


async def test_many_pods_are_explained_at_once_as_each_alone(tmp_path: Path) -> None:
    homeless = pod_manifest("homeless", nodeSelector={"topology.kubernetes.io/zone": "nowhere"})
    look = await looked(a_world(tmp_path, a_ready_pool(), a_deployment(2, cpu="6"), homeless))

    rows = pods_of(look).pods

    alone = [explain_pod(look, row.name) for row in rows]
    assert [(row.state, row.says, row.pool) for row in rows] == [(one.state, one.says, one.pool) for one in alone]
    assert {row.state for row in rows} == {"new_node", "refused"}
