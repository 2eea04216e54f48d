"""What `dovetail history` says that a node was made for."""

from pathlib import Path

from dovetail.answers.record.made_for import origins_of
from dovetail.model import names
from tests.cli.test_explain_node import a_bound_pod, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, looked


async def test_a_node_says_for_which_pods_it_was_made_and_which_are_still_there(tmp_path: Path) -> None:
    nodes = [body for number in (1, 2, 3) for body in a_managed_node(f"n{number}")]
    pods = [a_bound_pod(f"web-{number}", "n1") for number in (1, 2)]
    world = a_world(tmp_path, a_ready_pool(), *nodes, *pods)
    known = [pod["metadata"]["uid"] for pod in world.objects("Pod")]
    for name, plan, uids in (("claim-n1", "p1/0", [*known, "gone"]), ("claim-n2", "p2/3", [])):
        said = {names.PLAN: plan, names.PLANNED_PODS: ",".join(uids)}
        world.patch("NodeClaim", name, {"metadata": {"annotations": said}})

    snapshot = (await looked(world)).snapshot
    found = origins_of(snapshot, [f"claim-n{number}" for number in (1, 2, 3, 4)])

    assert [each.claim for each in found] == ["claim-n1", "claim-n2"], "others do not say it, or are gone"
    assert found[0].text == "claim-n1 was made for 3 pods; still there: default/web-1, default/web-2"
    assert found[0].disruption("demo") == "demo/disrupt/p1"
    assert found[1].text == "claim-n2 was made without a pod that waited"


async def test_a_node_whose_pods_were_evicted_elsewhere_says_that_they_come_back_under_other_names(
    tmp_path: Path,
) -> None:
    pods = [a_bound_pod(f"web-{number}", "n1") for number in (3, 4)]
    world = a_world(tmp_path, a_ready_pool(), *a_managed_node("n1"), *pods)
    said = {names.PLAN: "p1/0", names.PLANNED_PODS: "evicted-1,evicted-2,evicted-3"}
    world.patch("NodeClaim", "claim-n1", {"metadata": {"annotations": said}})

    [found] = origins_of((await looked(world)).snapshot, ["claim-n1"])

    assert found.text == (
        "claim-n1 was made for 3 pods; none of them is there: evicted ones come back under other names"
        " (now there: 2 other pods)"
    )
