"""The contract of Pods: listed live, evicted under budgets, deleted with a grace."""

import dataclasses

from dovetail.model.pods import Pod
from dovetail.ports.objects import Eviction
from tests.ports.objects import a_budget, a_least_node, a_least_pod, a_running_pod
from tests.ports.worlds.contract import World, eventually, unique

ANOTHER_UID = "00000000-0000-0000-0000-000000000000"


async def bound(world: World, app: str = "", running: bool = True) -> Pod:
    """A pod on a node of its own, as the port sees it."""
    node, name = unique("node"), unique("pod")
    await world.apply(a_least_node(node))
    make = a_running_pod if running else a_least_pod
    await world.apply(make(name, node, {"app": app or name}))
    (pod,) = await world.pods.list_on(node)
    return pod


async def counted_budget(world: World, app: str, allowed: int, **spec: object) -> str:
    """A budget whose status has been counted by its controller."""
    name = unique("budget")
    await world.apply(a_budget(name, app, **spec))

    def counted() -> bool:
        pdb = world.view.snapshot().pdbs.get(f"default/{name}")
        return pdb is not None and pdb.disruptions_allowed == allowed

    if allowed:
        assert await eventually(counted)
    else:  # nothing is allowed from the first moment; that the view knows of it is enough
        assert await eventually(lambda: f"default/{name}" in world.view.snapshot().pdbs)
    return name


class TestListing:
    async def test_exactly_the_pods_of_the_node_are_listed(self, world: World) -> None:
        first, _ = await bound(world), await bound(world)

        assert await world.pods.list_on(first.node_name) == (first,)
        assert await world.pods.list_on(unique("absent")) == ()

    async def test_the_view_finds_the_same_pods(self, world: World) -> None:
        pod = await bound(world)

        seen = await eventually(lambda: [p for p in world.lookups.pods_on(pod.node_name) if p.ready])

        assert [(p.uid, p.requests, p.node_name) for p in seen] == [(pod.uid, pod.requests, pod.node_name)]


class TestEvicting:
    async def test_a_pod_without_a_budget_goes(self, world: World) -> None:
        pod = await bound(world)

        eviction = await world.pods.evict(pod)

        assert (eviction.outcome, eviction.code) == ("evicted", 201)
        (left,) = await world.pods.list_on(pod.node_name)
        assert left.deleting_since is not None

    async def test_a_budget_without_allowance_blocks(self, world: World) -> None:
        app = unique("app")
        pod = await bound(world, app)
        await counted_budget(world, app, 0, maxUnavailable=0)

        eviction = await world.pods.evict(pod)

        assert (eviction.outcome, eviction.code) == ("blocked", 429)
        assert "budget" in eviction.message
        (left,) = await world.pods.list_on(pod.node_name)
        assert left.deleting_since is None

    async def test_several_budgets_are_unsupported(self, world: World) -> None:
        app = unique("app")
        pod = await bound(world, app)
        for _ in range(2):
            await counted_budget(world, app, 0, maxUnavailable=0)

        eviction = await world.pods.evict(pod)

        assert (eviction.outcome, eviction.code) == ("unsupported", 500)

    async def test_a_pod_that_is_gone_is_gone(self, world: World) -> None:
        pod = await bound(world, running=False)
        ghost = dataclasses.replace(pod, name=unique("ghost"))

        eviction = await world.pods.evict(ghost)

        assert (eviction.outcome, eviction.code) == ("gone", 404)

    async def test_another_pod_of_the_same_name_stays(self, world: World) -> None:
        pod = await bound(world)

        eviction = await world.pods.evict(dataclasses.replace(pod, uid=ANOTHER_UID))

        assert isinstance(eviction, Eviction) and (eviction.outcome, eviction.code) == ("replaced", 409)
        (left,) = await world.pods.list_on(pod.node_name)
        assert left.deleting_since is None


class TestDeleting:
    async def test_a_pod_is_given_the_grace_that_was_asked_for(self, world: World) -> None:
        pod = await bound(world)

        await world.pods.delete(pod, 7)

        body = await world.get("Pod", pod.key)
        assert body is not None and body["metadata"]["deletionGracePeriodSeconds"] == 7

    async def test_a_grace_of_nothing_is_a_grace_of_one_second(self, world: World) -> None:
        pod = await bound(world)

        await world.pods.delete(pod, 0)

        body = await world.get("Pod", pod.key)
        assert body is not None and body["metadata"]["deletionGracePeriodSeconds"] == 1

    async def test_a_shorter_grace_shortens_a_deletion_under_way(self, world: World) -> None:
        pod = await bound(world)
        await world.pods.evict(pod)

        await world.pods.delete(pod, 2)

        body = await world.get("Pod", pod.key)
        assert body is not None and body["metadata"]["deletionGracePeriodSeconds"] == 2

    async def test_a_pod_that_is_gone_and_another_of_the_same_name_are_no_errors(self, world: World) -> None:
        pod = await bound(world)

        await world.pods.delete(dataclasses.replace(pod, name=unique("ghost")), 5)
        await world.pods.delete(dataclasses.replace(pod, uid=ANOTHER_UID), 5)

        (left,) = await world.pods.list_on(pod.node_name)
        assert left.deleting_since is None
