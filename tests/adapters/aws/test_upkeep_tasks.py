"""What upkeep looks after beside classes: partitions, reservations that end or are lost, shifted zones."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.aws.adapter import AwsAdapter, UpkeepCluster
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, Ec2NodeClassUpkeep
from dovetail.adapters.aws.upkeep.reserved_instances import ReservedInstances
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.pods import Expression
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.cloud import Instance, Prepared
from dovetail.ports.failures import NotAsked, Postponed
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim
from testbed.cloud.server import CloudServer
from tests.placement.builders import a_general_pool
from worlds.aws import ClassStore, Notices, a_claim_of_ec2, amd64, any_kind, on_demand, one_of, open_adapter

PARTITION = "karpenter.k8s.aws/placement-group-partition"
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
M5_LARGE = one_of("node.kubernetes.io/instance-type", "m5.large")


class Objects:
    """Claims and nodes, as an API server would change them."""

    def __init__(self) -> None:
        self.claims: dict[str, NodeClaim] = {}
        self.nodes: dict[str, Node] = {}
        self.deleted: list[str] = []

    def launched(self, claim: NodeClaim, instance: Instance) -> NodeClaim:
        """As the launch leaves it, with a node that has joined."""
        self.claims[claim.name] = replace(
            claim,
            labels={**instance.labels, **claim.labels},
            annotations=dict(instance.annotations),
            provider_id=instance.provider_id,
            image_id=instance.image_id,
        )
        labels = {**instance.labels, names.REGISTERED: "true"}
        node = Node(name=f"node-{claim.name}", labels=labels, capacity={}, allocatable={})
        self.nodes[node.name] = replace(node, provider_id=instance.provider_id)
        return self.claims[claim.name]


class Claims:
    """The port NodeClaims over them."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def answered(self, name: str) -> NodeClaim | None:
        return None

    async def may_create(self, claim: NewClaim) -> None:
        raise NotImplementedError

    async def annotated_by(self, name: str, annotation: str) -> str:
        raise AssertionError

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        found = self.objects.claims[claim.name]
        self.objects.claims[claim.name] = replace(
            found,
            labels=_changed(found.labels, change.labels),
            annotations=_changed(found.annotations, change.annotations),
        )
        return self.objects.claims[claim.name]

    async def delete(self, name: str, uid: str) -> int:
        self.objects.deleted.append(name)
        self.objects.claims[name] = replace(self.objects.claims[name], deleting_since=1.0)
        return 1

    async def read(self, name: str) -> NodeClaim | None:
        return self.objects.claims.get(name)

    async def create(self, claim: NewClaim) -> NodeClaim:
        raise AssertionError("upkeep creates no claims")

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        raise AssertionError("upkeep leaves a claim's status alone")


class Nodes:
    """The port Nodes over them."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        return tuple(node for node in self.objects.nodes.values() if node.provider_id == provider_id)

    async def patch(self, node: Node, change: MetadataChange, taints: Sequence[Taint] | None = None) -> Node | None:
        changed = replace(node, labels=_changed(node.labels, change.labels))
        self.objects.nodes[node.name] = changed
        return changed

    async def read(self, name: str) -> Node | None:
        return self.objects.nodes.get(name)

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        raise AssertionError("upkeep says nothing on nodes")

    async def delete(self, name: str, uid: str) -> int:
        raise AssertionError("upkeep deletes no nodes")


def _changed(before: Any, change: Any) -> dict[str, str]:
    return {key: value for key, value in {**before, **change}.items() if value is not None}


class Scene:
    """A cloud, its adapter, a cluster, and the time."""

    def __init__(self, server: CloudServer, calls: Calls, **settings: Any) -> None:
        server.control("POST", "reset")
        self.server, self.ahead = server, 0.0
        self.classes, self.objects, self.notices = ClassStore(), Objects(), Notices()
        self.pools: list[NodePool] = []
        self.adapter: AwsAdapter = open_adapter(server, self.classes, calls, **settings)
        self._upkeep: Ec2NodeClassUpkeep | None = None

    def world(self, **change: Any) -> None:
        self.server.control("PATCH", "world", change)

    async def keep(self) -> float:
        if self._upkeep is None:
            now = ClusterNow(claims=lambda: tuple(self.objects.claims.values()), pools=lambda: tuple(self.pools))
            kept = UpkeepCluster(
                objects=self.classes,
                claims=Claims(self.objects),
                nodes=Nodes(self.objects),
                notices=self.notices,
                now=now,
            )
            self._upkeep = self.adapter.node_class_upkeep(kept)
        return await self._upkeep.keep()

    async def launched(self, *requirements: Expression) -> NodeClaim:
        claim = a_claim_of_ec2(*requirements)
        prepared = await self.adapter.cloud.prepare(claim)
        assert isinstance(prepared, Prepared), prepared
        instance = await self.adapter.cloud.launch(claim, prepared.request, claim.uid)
        assert isinstance(instance, Instance), instance
        return self.objects.launched(claim, instance)


@pytest.fixture
async def scene(aws_server: CloudServer, aws_calls: Calls) -> AsyncIterator[Scene]:
    found = Scene(aws_server, aws_calls, enable_zonal_shift=True)
    yield found
    await found.adapter.close()


GROUP = {"id": "pg-02", "name": "pp", "strategy": "partition", "partitions": 3}


class TestPartitions:
    async def test_a_launch_leaves_the_partition_open_and_upkeep_fills_it_in_when_ec2_knows_it(
        self, scene: Scene
    ) -> None:
        """AWS-94, AWS-95: until then the claim carries the mark that its registration waits for."""
        scene.world(runSeconds=2, placementGroups=[GROUP])
        scene.classes.apply(placementGroupSelector={"id": "pg-02"})
        await scene.keep()
        claim = await scene.launched(M5_LARGE, on_demand(), amd64())
        mark, label = claim.annotations[names.REGISTRATION_HOOK], claim.labels[PARTITION]

        await scene.keep()
        early = scene.objects.claims[claim.name].labels[PARTITION]
        async with asyncio.timeout(60):
            while not scene.objects.claims[claim.name].labels[PARTITION]:
                await asyncio.sleep(0.1)
                await scene.keep()

        after = scene.objects.claims[claim.name]
        assert (mark, label, early) == (PARTITION, "", "")
        assert after.labels[PARTITION] == "2"
        assert names.REGISTRATION_HOOK not in after.annotations

    async def test_a_claim_that_insists_on_a_partition_waits_for_nothing(self, scene: Scene) -> None:
        """AWS-173: of several partitions the lowest number."""
        scene.world(placementGroups=[{**GROUP, "partitions": 12}])
        scene.classes.apply(placementGroupSelector={"id": "pg-02"})
        await scene.keep()

        claim = await scene.launched(M5_LARGE, on_demand(), amd64(), one_of(PARTITION, "10", "2"))

        assert claim.labels[PARTITION] == "2"
        assert names.REGISTRATION_HOOK not in claim.annotations


BLOCK = {"id": "cr-03", "type": "m5.large", "zone": "us-west-2a", "available": 1, "rtype": "capacity-block"}
OPEN = {"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 2}


class TestReservations:
    async def reserved(self, scene: Scene, reservation: dict[str, Any]) -> NodeClaim:
        scene.world(reservations=[reservation])
        scene.classes.apply(capacityReservationSelectorTerms=[{"id": reservation["id"]}])
        await scene.keep()
        claim = await scene.launched(M5_LARGE, any_kind(), amd64())
        assert claim.labels[names.CAPACITY_TYPE] == "reserved"
        return claim

    async def test_an_instance_that_has_lost_its_reservation_is_on_demand_on_claim_and_node(self, scene: Scene) -> None:
        """AWS-147; the interruptible label stays, as upstream leaves it (AWS-174)."""
        claim = await self.reserved(scene, OPEN)
        await scene.keep()
        before = scene.objects.claims[claim.name].labels[names.CAPACITY_TYPE]
        gone = {"CapacityReservationId": None, "CapacityReservationSpecification": None}
        scene.server.control("PATCH", "instances/first", {"extra": gone})
        scene.adapter.inventory._listed_at = float("-inf")
        for task in scene._upkeep._parts.tasks:  # type: ignore[union-attr]
            if hasattr(task, "_next"):
                task._next = float("-inf")

        await scene.keep()

        assert before == "reserved"
        (node,) = scene.objects.nodes.values()
        for found in (scene.objects.claims[claim.name], node):
            assert found.labels[names.CAPACITY_TYPE] == "on-demand"
            assert RESERVATION not in found.labels
            assert "karpenter.k8s.aws/capacity-reservation-type" not in found.labels
            assert found.labels["karpenter.k8s.aws/capacity-reservation-interruptible"] == "false"
        since = memory_of(scene.objects.claims[claim.name].annotations).on_demand_since
        assert since is not None and abs(since - time.time()) < 600.0, "the bill begins then"

    async def test_claims_of_a_capacity_block_are_deleted_forty_minutes_before_its_end(self, scene: Scene) -> None:
        """AWS-148."""
        claim = await self.reserved(scene, {**BLOCK, "endIn": 7200})
        await scene.keep()
        before = list(scene.objects.deleted)
        scene.world(reservations=[{**BLOCK, "endIn": 1800}])
        scene.adapter.offerings.sources.reservations._asked.clear()
        scene.classes.apply(capacityReservationSelectorTerms=[{"id": "cr-03"}], tags={"look": "again"})

        await scene.keep()
        await scene.keep()

        assert (before, scene.objects.deleted) == ([], [claim.name])

    async def test_a_block_that_its_class_selects_no_longer_is_asked_for_by_the_claims(self, scene: Scene) -> None:
        """AWS-148: EC2 takes the instances back all the same, so their pods must leave before that."""
        claim = await self.reserved(scene, {**BLOCK, "endIn": 7200})
        scene.classes.apply(capacityReservationSelectorTerms=None)
        await scene.keep()
        scene.world(reservations=[{**BLOCK, "endIn": 1800}])
        scene.adapter.offerings.sources.reservations._asked.clear()
        since = scene.server.control("GET", "ledger/last")
        before = list(scene.objects.deleted)
        for task in scene._upkeep._parts.tasks:  # type: ignore[union-attr]
            if isinstance(task, ReservedInstances):
                task._next_ids = float("-inf")

        await scene.keep()
        await scene.keep()

        asked = [call["input"] for call in scene.server.calls("DescribeCapacityReservations", since)]
        assert (before, scene.objects.deleted) == ([], [claim.name])
        assert asked == [{"CapacityReservationIds": ["cr-03"], "Filters": [{"Name": "state", "Values": ["active"]}]}], (
            "once a minute"
        )

    @pytest.mark.parametrize("selected", [True, False])
    async def test_a_block_ends_by_the_clock_while_ec2_does_not_answer(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch, selected: bool
    ) -> None:
        """AWS-148: its end is in the class's status, or was answered for the claims before."""
        claim = await self.reserved(scene, {**BLOCK, "endIn": 42 * 60})
        (task,) = [each for each in scene._upkeep._parts.tasks if isinstance(each, ReservedInstances)]  # type: ignore[union-attr]
        if not selected:
            scene.classes.apply(capacityReservationSelectorTerms=None)
            task._next_ids = float("-inf")
        await scene.keep()
        before = list(scene.objects.deleted)
        scene.world(fail=[{"op": "DescribeCapacityReservations", "code": "InternalError", "status": 500}])
        at = time.time() + 180.0
        for part in (task, scene.adapter.offerings.sources.reservations):
            monkeypatch.setattr(part, "_clock", lambda: at)

        await task.keep(list(scene.objects.claims.values()))

        assert (before, scene.objects.deleted) == ([], [claim.name])

    async def test_an_id_that_ec2_does_not_know_hides_no_other(self, scene: Scene) -> None:
        """A reservation that was cancelled long ago may still stand on a claim."""
        scene.world(reservations=[{**BLOCK, "endIn": 1800}])

        reservations = scene.adapter.offerings.sources.reservations
        assert await reservations.ending({"cr-gone", "cr-03"}) == {"cr-03"}
        assert await reservations.ending(set()) == set()

    async def test_an_instance_on_demand_is_never_looked_up_for_its_reservation(self, scene: Scene) -> None:
        scene.classes.apply()
        await scene.keep()
        await scene.launched(M5_LARGE, on_demand(), amd64())
        await scene.keep()  # its tags
        since = scene.server.control("GET", "ledger/last")

        await scene.keep()

        assert scene.server.calls("DescribeInstances", since) == []


class TestZonalShift:
    async def shift(self, scene: Scene, *zone_ids: str) -> None:
        scene.world(zonalShift=[{"zoneId": zone} for zone in zone_ids])
        await scene.adapter.check()

    async def test_a_pool_gets_one_notice_when_a_zone_is_shifted_away_from_and_one_when_it_is_back(
        self, scene: Scene
    ) -> None:
        """AWS-155, AWS-168; a pool that is created later gets its notice, too."""
        scene.world(zonalShift={"zonalShifts": []})
        scene.classes.apply()
        scene.pools = [
            a_general_pool("all"),
            a_general_pool("elsewhere", requirements=(one_of(names.ZONE, "us-west-2b"),)),
        ]
        await scene.keep()
        zone = scene.classes.objects["default"]["status"]["subnets"][0]
        await self.shift(scene, zone["zoneID"])

        for _ in range(2):
            await scene.keep()
        scene.pools.append(a_general_pool("late"))
        await scene.keep()
        await self.shift(scene)
        await scene.keep()

        published = [(notice.reason, notice.name) for notice in scene.notices.published]
        assert published == [
            ("ZonalShiftActive", "all"),
            ("ZonalShiftActive", "late"),
            ("ZonalShiftCleared", "all"),
            ("ZonalShiftCleared", "late"),
        ]
        assert zone["zone"] == "us-west-2a"

    async def test_a_shift_ends_at_its_moment_although_nobody_is_asked_again(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """AWS-155: while the service is silent as well."""
        scene.world(zonalShift=[{"zoneId": "usw2-az1", "endIn": 3600}, {"zoneId": "usw2-az1", "endIn": 60}])
        scene.classes.apply()
        await scene.adapter.check()
        await scene.keep()
        held = []
        for later in (0, 3500, 3700):
            monkeypatch.setattr(scene.adapter.offerings, "_clock", lambda later=later: time.time() + later)
            held.append(scene.adapter.offerings.shifted)

        assert held == [{"us-west-2a"}, {"us-west-2a"}, frozenset()]

    async def test_in_a_zone_that_is_shifted_away_from_nothing_is_offered_described_or_terminated(
        self, scene: Scene
    ) -> None:
        """AWS-65, AWS-102, AWS-106: what is known of an instance there is answered without a call."""
        scene.world(zonalShift={"zonalShifts": []})
        scene.classes.apply()
        await scene.keep()
        claim = await scene.launched(M5_LARGE, on_demand(), amd64(), one_of(names.ZONE, "us-west-2a"))
        await scene.adapter.cloud.list_instances()
        await self.shift(scene, scene.classes.objects["default"]["status"]["subnets"][0]["zoneID"])
        since = scene.server.control("GET", "ledger/last")

        with pytest.raises(Postponed):
            await scene.adapter.cloud.terminate(claim.provider_id)
        with pytest.raises(NotAsked):
            await scene.adapter.cloud.reboot(claim.provider_id)
        found = await scene.adapter.cloud.find(provider_id=claim.provider_id)
        catalogue = await scene.adapter.catalogues.catalogue(a_general_pool("all"))

        assert scene.server.calls("DescribeInstances", since) == scene.server.calls("TerminateInstances", since) == []
        assert scene.server.calls("RebootInstances", since) == []
        assert found is not None
        assert found.provider_id == claim.provider_id
        zones = {
            value
            for kind in catalogue.types
            for offering in kind.offerings
            if offering.available
            for e in offering.requirements
            if e.key == names.ZONE
            for value in e.values
        }
        assert zones == {"us-west-2b", "us-west-2c"}


HASH, VERSION = "karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version"


async def test_claims_of_an_older_hash_version_are_carried_over_unless_they_had_drifted(scene: Scene) -> None:
    """AWS-47."""
    scene.classes.apply()
    await scene.keep()
    claim = await scene.launched(M5_LARGE, on_demand(), amd64())
    older = {**claim.annotations, HASH: "1", VERSION: "v5"}
    before = replace(claim, annotations=older)
    drifted = replace(before, name="drifted", conditions=(Condition(type=names.DRIFTED, status="True"),))
    scene.objects.claims = {claim.name: before, "drifted": drifted}
    known = scene.classes.objects["default"]
    stamps = {**known["metadata"]["annotations"], VERSION: "v5"}
    scene.classes._store("default", {**known, "metadata": {**known["metadata"], "annotations": stamps}})

    scene._upkeep._due["default"].at = 0.0  # type: ignore[union-attr]
    await scene.keep()

    now = scene.classes.objects["default"]["metadata"]["annotations"]
    kept = {name: (c.annotations[HASH], c.annotations[VERSION]) for name, c in scene.objects.claims.items()}
    assert now[VERSION] == "v6"
    assert kept == {claim.name: (now[HASH], "v6"), "drifted": ("1", "v6")}
