"""The contract of Catalogues: what could be launched, and whether what was launched is still right."""

import dataclasses

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import Catalogue, Offering
from dovetail.ports.cloud import Instance, NoCapacity, Prepared
from tests.ports.test_cloud import launched, prepared
from tests.ports.worlds.cloud_contract import CloudWorld
from tests.ports.worlds.contract import unique


def is_available(catalogue: Catalogue, instance: Instance) -> bool:
    """Whether the offering that an instance was launched from is available."""
    (kind,) = [t for t in catalogue.types if t.name == instance.labels[names.INSTANCE_TYPE]]
    wanted = {(names.ZONE, instance.labels[names.ZONE]), (names.CAPACITY_TYPE, instance.labels[names.CAPACITY_TYPE])}
    (offering,) = [
        o for o in kind.offerings if wanted <= {(e.key, value) for e in o.requirements for value in e.values}
    ]
    return offering.available


def is_on_demand(offering: Offering) -> bool:
    return any(e.key == names.CAPACITY_TYPE and names.CAPACITY_ON_DEMAND in e.values for e in offering.requirements)


def as_launched(claim: NodeClaim, instance: Instance) -> NodeClaim:
    """The claim as the launch leaves it (LIF-13)."""
    return dataclasses.replace(
        claim,
        labels={**instance.labels, **claim.labels},
        annotations={**claim.annotations, **instance.annotations},
        provider_id=instance.provider_id,
        image_id=instance.image_id,
    )


class TestCatalogue:
    async def test_every_type_says_something_of_every_well_known_label_and_every_offering_where_and_how(
        self, cloud_world: CloudWorld
    ) -> None:
        """CLD-11, CLD-12."""
        pool = await cloud_world.pool(await cloud_world.node_class(unique("class")))

        catalogue = await cloud_world.catalogues.catalogue(pool)

        assert catalogue.error == ""
        assert catalogue.types
        for kind in catalogue.types:
            said = {e.key for e in kind.requirements}
            assert said >= names.WELL_KNOWN_LABELS - {names.NODE_POOL}
            assert kind.capacity["cpu"] > kind.overhead["cpu"] > 0
            for offering in kind.offerings:
                assert {e.key for e in offering.requirements} >= {names.ZONE, names.CAPACITY_TYPE}
                assert offering.price > 0

    async def test_an_offering_that_was_refused_is_known_as_short_and_its_type_stays_listed(
        self, cloud_world: CloudWorld
    ) -> None:
        """CLD-5, AWS-72."""
        node_class = await cloud_world.node_class(unique("class"))
        pool, claim = await cloud_world.pool(node_class), await cloud_world.claim(node_class)
        instance = await launched(cloud_world, claim)
        other = await cloud_world.claim(node_class)
        request = await prepared(cloud_world, other)
        before = is_available(await cloud_world.catalogues.catalogue(pool), instance)
        await cloud_world.make_short(instance)

        await cloud_world.cloud.launch(other, request, unique("token"))
        after = is_available(await cloud_world.catalogues.catalogue(pool), instance)

        await cloud_world.end_shortages()
        assert (before, after) == (True, False)

    async def test_a_type_of_which_nothing_is_available_stays_listed(self, cloud_world: CloudWorld) -> None:
        """CLD-5: every offering of what claims allow is refused, until there is nothing to ask for any more."""
        node_class = await cloud_world.node_class(unique("class"))
        pool = await cloud_world.pool(node_class)
        before = await cloud_world.catalogues.catalogue(pool)
        await cloud_world.make_short(None)

        while isinstance(
            asked := await cloud_world.cloud.prepare(claim := await cloud_world.claim(node_class)), Prepared
        ):
            answer = await cloud_world.cloud.launch(claim, asked.request, unique("token"))
            assert isinstance(answer, NoCapacity)
        after = await cloud_world.catalogues.catalogue(pool)

        await cloud_world.end_shortages()
        assert [kind.name for kind in after.types] == [kind.name for kind in before.types]
        on_demand = [[o.available for o in kind.offerings if is_on_demand(o)] for kind in after.types]
        assert not all(any(available) for available in on_demand)

    async def test_without_its_class_a_pools_types_cannot_be_listed(self, cloud_world: CloudWorld) -> None:
        node_class = await cloud_world.node_class(unique("class"))
        pool = await cloud_world.pool(node_class)
        await cloud_world.remove_class(node_class)

        assert (await cloud_world.catalogues.catalogue(pool)).error


class TestNodeClass:
    async def test_a_ready_class_an_unready_one_and_a_missing_one_are_distinguished(
        self, cloud_world: CloudWorld
    ) -> None:
        """NPL-15."""
        node_class = await cloud_world.node_class(unique("class"))

        ready = await cloud_world.catalogues.node_class(node_class)
        await cloud_world.make_class_unready(node_class)
        unready = await cloud_world.catalogues.node_class(node_class)
        await cloud_world.remove_class(node_class)
        missing = await cloud_world.catalogues.node_class(node_class)

        assert (ready.found, ready.ready) == (True, "True")
        assert (unready.found, unready.ready) == (True, "False")
        assert unready.message
        assert not missing.found

    async def test_its_kind_is_one_that_the_cloud_understands(self, cloud_world: CloudWorld) -> None:
        """PLM-1."""
        node_class = await cloud_world.node_class(unique("class"))

        assert (node_class.group, node_class.kind) in cloud_world.catalogues.supported_classes()


class TestRepair:
    async def test_a_node_that_is_silent_or_not_ready_is_to_be_repaired_after_a_while(
        self, cloud_world: CloudWorld
    ) -> None:
        """CLD-7."""
        policies = await cloud_world.catalogues.repair_policies()

        assert {(p.condition, p.status) for p in policies} >= {(names.READY, "False"), (names.READY, "Unknown")}
        assert all(policy.toleration > 0 for policy in policies)


class TestDrift:
    async def test_an_instance_drifts_when_its_class_asks_for_something_else(self, cloud_world: CloudWorld) -> None:
        """CLD-6."""
        node_class = await cloud_world.node_class(unique("class"))
        claim = await cloud_world.claim(node_class)
        standing = as_launched(claim, await launched(cloud_world, claim))

        before = await cloud_world.catalogues.drift(standing)
        await cloud_world.change_class(node_class)
        after = await cloud_world.catalogues.drift(standing)

        assert before == ""
        assert after
