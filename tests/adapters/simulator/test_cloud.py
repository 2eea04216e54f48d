"""The simulated cloud: tokens, missing capacity, faults, instances that never join."""

from dataclasses import replace

import pytest

from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.simulator.cloud.catalogue import default_catalogue
from dovetail.adapters.simulator.cloud.instances import LaunchCall
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.ports.cloud import ClassNotReady, Instance, NoCapacity, Prepared
from dovetail.ports.failures import Refused, Unreachable
from dovetail.wiring.simulated import SimulatedAdapter
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.manifests import a_new_claim, a_node_class


async def a_created_claim(adapter: SimulatedAdapter, name: str = "default-1", *more: Expression) -> NodeClaim:
    claim = a_new_claim(name)
    requirements = (*claim.requirements, *more)
    return await adapter.claims.create(a_new_claim(name, requirements=requirements))


async def prepared(adapter: SimulatedAdapter, claim: NodeClaim) -> str:
    answer = await adapter.cloud.prepare(claim)
    assert isinstance(answer, Prepared)
    return answer.request


async def launched(adapter: SimulatedAdapter, claim: NodeClaim, token: str = "t") -> Instance:
    answer = await adapter.cloud.launch(claim, await prepared(adapter, claim), token)
    assert isinstance(answer, Instance)
    return answer


def test_the_catalogue_is_that_of_upstreams_simulator_to_the_last_bit() -> None:
    """KWK-10's checks."""
    types = default_catalogue().types

    def price(name: str, market: str) -> float:
        return types[name].prices[OfferingKey(name, "test-zone-a", market)]

    assert len(types) == 144
    assert price("c-1x-amd64-linux", "on-demand") == 0.027147483648
    assert price("c-1x-amd64-linux", "spot") == 0.0190032385536
    assert price("s-4x-amd64-linux", "on-demand") == 0.117179869184
    assert price("s-4x-amd64-linux", "spot") == 0.0820259084288
    assert price("m-256x-amd64-linux", "on-demand") == 8.599023255552
    assert (types["m-256x-amd64-linux"].capacity["memory"], types["m-256x-amd64-linux"].capacity["pods"]) == (
        2 * 2**40,
        1024,
    )
    assert sum(len(each.prices) for each in types.values()) == 144 * 8


async def test_a_claim_gets_the_cheapest_offering_that_holds_it(adapter: SimulatedAdapter) -> None:
    claim = await a_created_claim(adapter)

    instance = await launched(adapter, claim)

    # 2 cpu are requested and 100m of each instance are the kubelet's own: the type of two cpu is too small.
    assert instance.labels[names.INSTANCE_TYPE] == "c-4x-amd64-linux"
    assert instance.labels[names.CAPACITY_TYPE] == "spot"
    assert instance.claim_uid == claim.uid


async def test_the_same_token_launches_once(stage: Stage, adapter: SimulatedAdapter) -> None:
    claim = await a_created_claim(adapter)
    request = await prepared(adapter, claim)

    answers = [await adapter.cloud.launch(claim, request, "t") for _ in range(3)]

    assert len({a.provider_id for a in answers if isinstance(a, Instance)}) == 1
    assert len(stage.world.instances()) == 1


async def test_the_same_token_with_other_parameters_is_refused_as_aws_does(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    """AWS-181: IdempotentParameterMismatch."""
    claim, other = await a_created_claim(adapter), await a_created_claim(adapter, "default-2")
    await launched(adapter, claim, "t")

    with pytest.raises(Refused, match="IdempotentParameterMismatch"):
        await adapter.cloud.launch(other, await prepared(adapter, other), "t")

    assert len(stage.world.instances()) == 1


async def test_a_token_never_launches_a_second_instance_even_after_the_first_is_gone(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    claim = await a_created_claim(adapter)
    request = await prepared(adapter, claim)
    first = await launched(adapter, claim)
    await adapter.cloud.terminate(first.provider_id)
    stage.pass_time(5)

    again = await adapter.cloud.launch(claim, request, "t")

    assert isinstance(again, Instance)
    assert (again.provider_id, again.state) == (first.provider_id, "terminating")
    assert await adapter.cloud.find(claim_uid=claim.uid) is None


async def test_an_answer_lost_after_the_launch_leaves_the_instance_to_be_found(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    """DUR-1."""
    claim = await a_created_claim(adapter)
    request = await prepared(adapter, claim)
    stage.world.fail("cloud:launch", "after")

    with pytest.raises(Unreachable):
        await adapter.cloud.launch(claim, request, "t")
    found = await adapter.cloud.find(claim_uid=claim.uid)
    again = await adapter.cloud.launch(claim, request, "t")

    assert found == again
    assert len(stage.world.instances()) == 1


async def test_a_fault_before_the_effect_launches_nothing(stage: Stage, adapter: SimulatedAdapter) -> None:
    claim = await a_created_claim(adapter)
    stage.world.fail("cloud:launch", "before", "Throttled")

    with pytest.raises(Exception, match="fault on order"):
        await adapter.cloud.launch(claim, await prepared(adapter, claim), "t")

    assert stage.world.instances() == []
    assert [e.outcome for e in stage.world.ledger() if e.operation == "cloud:launch"] == ["failed before its effect"]


async def test_a_fault_lasts_until_the_world_is_mended(stage: Stage, adapter: SimulatedAdapter) -> None:
    claim = await a_created_claim(adapter)
    request = await prepared(adapter, claim)
    stage.world.fail("cloud:launch", "before", times=1000)

    for _ in range(3):
        with pytest.raises(Unreachable):
            await adapter.cloud.launch(claim, request, "t")
    stage.world.mend()
    await adapter.cloud.launch(claim, request, "t")

    assert len(stage.world.instances()) == 1


async def test_a_shortage_of_one_offering_leads_to_the_next_and_is_remembered_for_three_minutes(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    """AWS-72."""
    claim = await a_created_claim(adapter)
    request = await prepared(adapter, claim)
    stage.world.sell_out("c-4x-amd64-linux", "test-zone-a", "spot")

    instance = await adapter.cloud.launch(claim, request, "t")

    assert isinstance(instance, Instance)
    assert instance.labels[names.ZONE] == "test-zone-b"
    stage.world.end_sell_outs()
    assert '"test-zone-a","spot"' not in (await prepared(adapter, claim)).split("]")[0]
    stage.clock.now += 181
    assert '"test-zone-a","spot"' in (await prepared(adapter, claim)).split("]")[0]


async def test_a_shortage_everywhere_is_no_capacity_and_the_token_stays_free(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    claim = await a_created_claim(adapter)
    request = await prepared(adapter, claim)
    stage.world.sell_out()

    refused = await adapter.cloud.launch(claim, request, "t")
    stage.world.end_sell_outs()
    instance = await adapter.cloud.launch(claim, request, "t")

    assert isinstance(refused, NoCapacity)
    assert isinstance(instance, Instance)


@pytest.mark.parametrize("status", ["False", "Unknown"])
async def test_a_class_that_is_not_ready_is_a_reason(stage: Stage, adapter: SimulatedAdapter, status: str) -> None:
    claim = await a_created_claim(adapter)
    conditions = [{"type": "Ready", "status": status, "message": "no subnet"}]
    stage.world.apply({**a_node_class(), "status": {"conditions": conditions}})

    answer = await adapter.cloud.prepare(claim)

    assert isinstance(answer, ClassNotReady)
    assert "no subnet" in answer.message


async def test_a_missing_class_is_a_reason(stage: Stage, adapter: SimulatedAdapter) -> None:
    claim = await a_created_claim(adapter)
    stage.world.delete("EmbeddedNodeClass", "default")

    assert isinstance(await adapter.cloud.prepare(claim), ClassNotReady)


async def test_drift_distinguishes_a_changed_class_from_a_changed_image(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    """CLD-6."""
    claim = await a_created_claim(adapter)
    instance = await launched(adapter, claim)
    claim = a_launched(claim, instance)

    unchanged = await adapter.catalogues.drift(claim)
    stage.world.patch("EmbeddedNodeClass", "default", {"spec": {"image": "image-2"}})
    new_image = await adapter.catalogues.drift(claim)
    stage.world.patch("EmbeddedNodeClass", "default", {"spec": {"zones": ["test-zone-d"]}})
    new_class = await adapter.catalogues.drift(claim)

    assert (unchanged, new_image, new_class) == ("", "ImageDrift", "NodeClassDrift")


def a_launched(claim: NodeClaim, instance: Instance) -> NodeClaim:
    return replace(
        claim,
        annotations={**claim.annotations, **instance.annotations},
        image_id=instance.image_id,
        capacity=instance.capacity,
        allocatable=instance.allocatable,
    )


async def test_only_this_clusters_instances_are_listed(stage: Stage, adapter: SimulatedAdapter) -> None:
    claim = await a_created_claim(adapter)
    instance = await launched(adapter, claim)
    strange = LaunchCall(
        token="",
        parameters="",
        pools=(OfferingKey("c-1x-amd64-linux", "test-zone-a", "spot"),),
        cluster="another",
        claim_uid="",
        claim_name="",
        image="image-1",
        annotations="{}",
        user_data='{"labels": {}, "taints": []}',
    )
    stage.world.launch(strange)

    assert [i.provider_id for i in await adapter.cloud.list_instances()] == [instance.provider_id]


async def test_termination_is_under_way_and_then_done_however_often_it_is_asked(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    """CLD-2."""
    instance = await launched(adapter, await a_created_claim(adapter))

    answers = [await adapter.cloud.terminate(instance.provider_id) for _ in range(2)]
    stage.pass_time(2)
    answers.append(await adapter.cloud.terminate(instance.provider_id))
    answers.append(await adapter.cloud.terminate(""))

    assert answers == ["terminating", "terminating", "gone", "gone"]
