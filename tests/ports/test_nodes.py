"""The contract of Nodes."""

from dataclasses import replace

import pytest

from dovetail.model.nodes import Condition, Node
from dovetail.model.pods import Owner
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange
from tests.ports.objects import a_least_node
from tests.ports.worlds.contract import World, eventually, unique

DISRUPTED = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
# Nothing removes this one, and the pods of these tests tolerate everything.
DEDICATED = {"key": "example.com/dedicated", "effect": "NoSchedule", "value": "red"}


async def made(world: World, provider_id: str = "") -> Node:
    body = await world.apply(a_least_node(unique("node"), provider_id))
    node = await world.nodes.read(body["metadata"]["name"])
    assert node is not None
    return node


async def changed(world: World, name: str, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node:
    """As callers do it: read again on a conflict, since a controller may write to a new node too."""
    for _ in range(20):
        node = await world.nodes.read(name)
        assert node is not None
        try:
            result = await world.nodes.patch(node, change, taints)
        except Conflict:
            continue
        assert result is not None
        return result
    raise AssertionError("conflicts without end")


class TestReading:
    async def test_a_node_that_is_not_there_is_none(self, world: World) -> None:
        assert await world.nodes.read(unique("absent")) is None

    async def test_a_node_is_found_by_the_id_of_its_instance(self, world: World) -> None:
        provider_id = f"aws:///a/{unique('i')}"
        node = await made(world, provider_id)
        await eventually(lambda: world.lookups.node(node.name))

        assert [n.name for n in await world.nodes.list_by_provider_id(provider_id)] == [node.name]
        assert [n.name for n in world.lookups.nodes_of(provider_id)] == [node.name]

    async def test_an_empty_id_matches_nothing(self, world: World) -> None:
        node = await made(world)
        await eventually(lambda: world.lookups.node(node.name))

        assert await world.nodes.list_by_provider_id("") == ()
        assert world.lookups.nodes_of("") == ()

    async def test_a_node_that_is_gone_is_not_found_though_the_view_may_still_hold_it(self, world: World) -> None:
        provider_id = f"aws:///a/{unique('i')}"
        node = await made(world, provider_id)
        await eventually(lambda: world.lookups.node(node.name))

        await world.delete("Node", node.name)

        assert await world.nodes.list_by_provider_id(provider_id) == ()


class TestChanging:
    async def test_metadata_and_taints_change_in_one_write(self, world: World) -> None:
        node = await made(world)
        others = tuple(t for t in node.taints if t.key.startswith("node.kubernetes.io/"))

        result = await changed(
            world,
            node.name,
            MetadataChange(labels={"karpenter.sh/registered": "true"}, finalizers=("karpenter.sh/termination",)),
            taints=(*others, DISRUPTED),
        )

        assert DISRUPTED in result.taints
        assert result.labels["karpenter.sh/registered"] == "true"
        assert result.finalizers == ("karpenter.sh/termination",)
        assert int(result.resource_version) > int(node.resource_version)
        await changed(world, node.name, MetadataChange(finalizers=()))

    async def test_all_taints_can_be_taken_off(self, world: World) -> None:
        node = await made(world)
        await changed(world, node.name, MetadataChange(), taints=(DISRUPTED,))

        result = await changed(world, node.name, MetadataChange(), taints=())

        assert DISRUPTED not in result.taints

    async def test_taints_that_are_not_given_stay(self, world: World) -> None:
        body = a_least_node(unique("node"))
        body["spec"]["taints"] = [DEDICATED]
        await world.apply(body)

        result = await changed(world, body["metadata"]["name"], MetadataChange(labels={"a": "1"}))

        assert Taint(**DEDICATED) in result.taints

    async def test_a_taint_keeps_the_time_since_which_it_evicts(self, world: World) -> None:
        body = a_least_node(unique("node"))
        timed = {"key": "example.com/out", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
        body["spec"]["taints"] = [timed]
        await world.apply(body)
        name = body["metadata"]["name"]

        await changed(
            world, name, MetadataChange(), taints=(Taint(key="example.com/out", effect="NoExecute"), DISRUPTED)
        )

        stored = await world.get("Node", name)
        assert stored is not None and timed in stored["spec"]["taints"]

    async def test_an_owner_is_added(self, world: World) -> None:
        node = await made(world)
        # The garbage collector removes what only a missing owner owns, so the owner is another node, which is there.
        other = await made(world)
        owner = Owner(api_version="v1", kind="Node", name=other.name, uid=other.uid)

        result = await changed(world, node.name, MetadataChange(add_owner=owner))

        assert result.owners == (owner,)

    async def test_a_change_of_what_others_have_changed_is_a_conflict(self, world: World) -> None:
        """What else has changed is no conflict on a real server: a kubelet writes its Node all the time (PLM-8)."""
        node = await made(world)
        decided = MetadataChange(labels={"a": "2"}, finalizers=("karpenter.sh/termination",))
        await changed(world, node.name, MetadataChange(labels={"a": "1"}))

        with pytest.raises(Conflict, match=node.name):
            await world.nodes.patch(node, decided, taints=(*node.taints, DISRUPTED))

        found = await world.nodes.read(node.name)
        assert found is not None and (found.labels["a"], found.finalizers) == ("1", ())
        assert DISRUPTED not in found.taints

    async def test_a_node_that_is_gone_is_none(self, world: World) -> None:
        node = await made(world)
        await world.delete("Node", node.name)

        assert await world.nodes.patch(node, MetadataChange(labels={"a": "1"})) is None


class TestConditions:
    async def test_those_that_are_set_stand_beside_those_of_others_whatever_the_version(self, world: World) -> None:
        node = await made(world)
        await changed(world, node.name, MetadataChange(labels={"a": "1"}))
        before = {each.type for each in node.conditions}

        await world.nodes.set_conditions(
            node, (a_condition("DrainInProgress", "True"), a_condition("Drained", "False"))
        )
        await world.nodes.set_conditions(node, (a_condition("Drained", "True"),))

        found = await world.nodes.read(node.name)
        assert found is not None
        states = {each.type: each.status for each in found.conditions}
        assert (states["DrainInProgress"], states["Drained"]) == ("True", "True")
        assert before <= states.keys() and found.labels["a"] == "1"

    async def test_neither_a_node_that_is_gone_nor_another_one_of_its_name_is_touched(self, world: World) -> None:
        node = await made(world)
        other = replace(node, uid="00000000-0000-0000-0000-000000000000")

        await world.nodes.set_conditions(other, (a_condition("Drained", "True"),))
        found = await world.nodes.read(node.name)
        assert found is not None and found.condition("Drained") is None
        await world.delete("Node", node.name)
        await world.nodes.set_conditions(node, (a_condition("Drained", "True"),))

        assert await world.nodes.read(node.name) is None


def a_condition(kind: str, status: str) -> Condition:
    return Condition(type=kind, status=status, reason="Tried", message="by a test", changed=1_750_000_000.0)


class TestDeleting:
    async def test_a_node_without_finalizers_is_gone(self, world: World) -> None:
        node = await made(world)

        assert await world.nodes.delete(node.name, node.uid) == 0
        assert await world.nodes.read(node.name) is None
        assert await world.nodes.delete(node.name, node.uid) == 0

    async def test_a_node_with_a_finalizer_is_deleting(self, world: World) -> None:
        node = await made(world)
        held = await changed(world, node.name, MetadataChange(finalizers=("karpenter.sh/termination",)))

        version = await world.nodes.delete(node.name, held.uid)

        found = await world.nodes.read(node.name)
        assert found is not None and found.deleting_since is not None and version > int(held.resource_version)
        await changed(world, node.name, MetadataChange(finalizers=()))
        assert await world.nodes.read(node.name) is None

    async def test_another_node_of_the_same_name_stays(self, world: World) -> None:
        node = await made(world)

        assert await world.nodes.delete(node.name, "00000000-0000-0000-0000-000000000000") == 0

        assert await world.nodes.read(node.name) is not None
