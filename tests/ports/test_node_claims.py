"""The contract of NodeClaims."""

import dataclasses

import pytest

from dovetail.messages.writes import claim_write
from dovetail.model.nodes import Condition
from dovetail.model.pods import Expression, Owner
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.failures import Conflict, Refused, Taken
from dovetail.ports.objects import ClaimStatus, MetadataChange
from tests.ports.objects import NODE_CLASS, a_least_pool, a_new_claim
from tests.ports.worlds.contract import World, eventually, unique

TAINT = Taint(key="example.com/team", effect="NoSchedule", value="red")


class TestCreating:
    async def test_a_claim_stands_as_it_was_asked_for_with_its_finalizer_from_the_start(self, world: World) -> None:
        pool = await world.apply(a_least_pool(unique("pool")))
        owner = Owner(
            api_version="karpenter.sh/v1", kind="NodePool", name=pool["metadata"]["name"], uid=pool["metadata"]["uid"]
        )
        new = a_new_claim(
            unique("claim"),
            owner=owner,
            requirements=(
                Expression(key="kubernetes.io/arch", operator="In", values=("amd64", "arm64"), min_values=2),
                Expression(key="example.com/gpu", operator="DoesNotExist"),
            ),
            taints=(TAINT,),
            startup_taints=(Taint(key="example.com/starting", effect="NoExecute"),),
            expire_after=5400.0,
            termination_grace=90.0,
        )

        made = await world.claims.create(new)

        assert made == await world.claims.read(new.name)
        assert (made.labels, made.annotations, made.finalizers) == (new.labels, new.annotations, new.finalizers)
        assert made.owners == (owner,)
        assert (made.node_class, made.requirements, made.requests) == (NODE_CLASS, new.requirements, new.requests)
        assert (made.taints, made.startup_taints) == (new.taints, new.startup_taints)
        assert (made.expire_after, made.termination_grace) == (5400.0, 90.0)
        assert made.uid and made.resource_version and made.generation == 1 and made.created

    async def test_a_claim_that_never_expires_says_so(self, world: World) -> None:
        made = await world.claims.create(a_new_claim(unique("claim"), expire_after=None))

        body = await world.get("NodeClaim", made.name)
        assert made.expire_after is None
        assert body is not None and body["spec"]["expireAfter"] == "Never"

    async def test_the_same_plan_may_create_twice_and_gets_one_claim(self, world: World) -> None:
        new = a_new_claim(unique("claim"), plan="0198/3")

        first, second = await world.claims.create(new), await world.claims.create(new)

        assert first == second

    async def test_a_name_that_another_plan_has_is_taken(self, world: World) -> None:
        new = a_new_claim(unique("claim"), plan="0198/3")
        await world.claims.create(new)

        with pytest.raises(Taken, match=new.name):
            await world.claims.create(dataclasses.replace(new, annotations={"dovetail.sh/plan": "0199/3"}))

    async def test_without_a_plan_no_existing_claim_is_ours(self, world: World) -> None:
        new = a_new_claim(unique("claim"), annotations={})
        await world.claims.create(new)

        with pytest.raises(Taken, match=new.name):
            await world.claims.create(new)

    async def test_a_claim_that_breaks_the_rules_is_refused_by_name(self, world: World) -> None:
        bad = a_new_claim(unique("claim"), requirements=(Expression(key="kubernetes.io/hostname", operator="Exists"),))

        with pytest.raises(Refused, match=bad.name):
            await world.claims.create(bad)


class TestReading:
    async def test_a_claim_that_is_not_there_is_none(self, world: World) -> None:
        assert await world.claims.read(unique("absent")) is None


class TestChangingMetadata:
    async def test_labels_and_annotations_are_set_and_removed_and_others_are_left_alone(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim"), labels={"a": "1", "b": "2"}))

        changed = await world.claims.patch(
            claim, MetadataChange(labels={"a": None, "c": "3"}, annotations={"dovetail.sh/owner": "x/disrupt/1"})
        )

        assert changed is not None and changed == await world.claims.read(claim.name)
        assert changed.labels == {"b": "2", "c": "3"}
        assert changed.annotations == {**claim.annotations, "dovetail.sh/owner": "x/disrupt/1"}
        assert changed.finalizers == claim.finalizers

    async def test_a_change_decided_on_an_old_version_is_a_conflict(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))
        await world.claims.patch(claim, MetadataChange(labels={"a": "1"}))

        with pytest.raises(Conflict, match=claim.name):
            await world.claims.patch(claim, MetadataChange(labels={"a": "2"}))

    async def test_a_claim_that_is_gone_is_none(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim"), finalizers=()))
        await world.claims.delete(claim.name, claim.uid)

        assert await world.claims.patch(claim, MetadataChange(labels={"a": "1"})) is None
        assert await world.claims.patch_status(claim, ClaimStatus(node_name="n")) is None

    async def test_another_claim_of_the_same_name_is_not_touched(self, world: World) -> None:
        first = await world.claims.create(a_new_claim(unique("claim"), finalizers=()))
        await world.claims.delete(first.name, first.uid)
        second = await world.claims.create(a_new_claim(first.name, finalizers=()))

        assert await world.claims.patch(first, MetadataChange(labels={"a": "1"})) is None
        assert await world.claims.read(first.name) == second

    async def test_an_owner_is_added_once_and_takes_nothing_from_the_others(self, world: World) -> None:
        pools = [await world.apply(a_least_pool(unique("pool"))) for _ in range(2)]
        owners = [
            Owner(api_version="karpenter.sh/v1", kind="NodePool", name=p["metadata"]["name"], uid=p["metadata"]["uid"])
            for p in pools
        ]
        claim = await world.claims.create(a_new_claim(unique("claim"), owner=owners[0]))

        changed = await world.claims.patch(claim, MetadataChange(add_owner=owners[1]))
        again = await world.claims.patch(changed or claim, MetadataChange(add_owner=owners[1]))

        body = await world.get("NodeClaim", claim.name)
        assert again is not None and again.owners == tuple(owners)
        assert body is not None and all(o["blockOwnerDeletion"] for o in body["metadata"]["ownerReferences"])

    async def test_releasing_the_last_finalizer_of_a_deleted_claim_ends_it(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))
        await world.claims.delete(claim.name, claim.uid)
        deleting = await world.claims.read(claim.name)
        assert deleting is not None and deleting.deleting_since is not None

        await world.claims.patch(deleting, MetadataChange(finalizers=()))

        assert await world.claims.read(claim.name) is None


class TestChangingStatus:
    async def test_fields_that_are_not_given_stay(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))
        launched = Condition(type="Launched", status="True", reason="Launched", changed=1_700_000_000.0, generation=1)
        first = await world.claims.patch_status(
            claim, ClaimStatus(provider_id="aws:///a/i-1", image_id="ami-1", capacity={"cpu": 4 * 10**9, "old": 3})
        )

        second = await world.claims.patch_status(
            first or claim,
            ClaimStatus(conditions=(launched,), capacity={"cpu": 2 * 10**9}, last_pod_event=1_700_000_001.0),
        )

        assert second is not None and second == await world.claims.read(claim.name)
        assert (second.provider_id, second.image_id, second.node_name) == ("aws:///a/i-1", "ami-1", "")
        assert (second.capacity, second.conditions) == ({"cpu": 2 * 10**9}, (launched,))
        assert second.last_pod_event == 1_700_000_001.0
        assert second.generation == claim.generation

    async def test_the_whole_list_of_conditions_is_written(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))
        one, other = (
            Condition(type=kind, status="Unknown", reason="AwaitingReconciliation", changed=1_700_000_000.0)
            for kind in ("Launched", "Ready")
        )
        first = await world.claims.patch_status(claim, ClaimStatus(conditions=(one, other)))

        second = await world.claims.patch_status(first or claim, ClaimStatus(conditions=(other,)))

        assert second is not None and second.conditions == (other,)

    async def test_a_status_decided_on_an_old_version_is_a_conflict(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))
        await world.claims.patch(claim, MetadataChange(labels={"a": "1"}))

        with pytest.raises(Conflict, match=claim.name):
            await world.claims.patch_status(claim, ClaimStatus(node_name="n"))


class TestDeleting:
    async def test_a_claim_with_a_finalizer_is_deleting_at_the_version_returned(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))

        version = await world.claims.delete(claim.name, claim.uid)

        found = await world.claims.read(claim.name)
        assert found is not None and found.deleting_since is not None
        assert version == int(found.resource_version) > int(claim.resource_version)

    async def test_deleting_again_changes_nothing(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))

        first = await world.claims.delete(claim.name, claim.uid)

        assert await world.claims.delete(claim.name, claim.uid) == first

    async def test_a_claim_without_finalizers_is_gone(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim"), finalizers=()))

        assert await world.claims.delete(claim.name, claim.uid) == 0
        assert await world.claims.read(claim.name) is None
        assert await world.claims.delete(claim.name, claim.uid) == 0

    async def test_another_claim_of_the_same_name_stays(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))

        assert await world.claims.delete(claim.name, "00000000-0000-0000-0000-000000000000") == 0

        assert await world.claims.read(claim.name) == claim


class TestSeeing:
    async def test_a_claim_is_seen_once_the_view_has_caught_up(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim")))

        await world.view.catch_up([claim_write(claim)])

        assert world.lookups.claim(claim.name) == claim
        assert world.view.snapshot().claims[claim.name] == claim

    async def test_a_claim_that_ends_disappears_from_the_view(self, world: World) -> None:
        claim = await world.claims.create(a_new_claim(unique("claim"), finalizers=()))
        await world.claims.delete(claim.name, claim.uid)

        assert await eventually(lambda: world.lookups.claim(claim.name) is None)
