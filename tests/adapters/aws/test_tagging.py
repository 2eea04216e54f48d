"""The name of the node on its instance (AWS-112)."""

import time
from dataclasses import replace
from typing import Any

from dovetail.adapters.aws.upkeep.tagging import Tagging
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange
from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2


class Claims:
    """Remembers the annotations that are written."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.written.append((claim.name, dict(change.annotations or {})))
        return claim


async def joined(stage: Stage) -> NodeClaim:
    await stage.with_class()
    claim = a_claim_of_ec2(name="default-a")
    instance = await stage.launched(claim)
    return replace(claim, provider_id=instance.provider_id, node_name="node-a")


async def test_an_instance_gets_the_name_of_its_node_once(stage: Stage) -> None:
    claim, claims = await joined(stage), Claims()
    tagging = Tagging(stage.adapter.calls, stage.adapter.inventory, "dovetail", claims, clock=time.time)  # type: ignore[arg-type]

    await tagging.keep([claim])

    (call,) = stage.calls("CreateTags")
    assert call["input"]["Tags"] == [{"Key": "Name", "Value": "node-a"}]  # the claim's name was in the launch
    done = {"karpenter.k8s.aws/tagged": "true", "compatibility.karpenter.k8s.aws/cluster-name-tagged": "true"}
    assert claims.written == [("default-a", done)]
    await tagging.keep([replace(claim, annotations=done)])
    assert len(stage.calls("CreateTags")) == 1


async def test_a_name_that_is_there_is_never_overwritten(stage: Stage) -> None:
    claim, claims = await joined(stage), Claims()
    stage.server.control("PATCH", "instances/first", {"tags": {"Name": "mine"}})
    tagging = Tagging(stage.adapter.calls, stage.adapter.inventory, "dovetail", claims, clock=time.time)  # type: ignore[arg-type]

    await tagging.keep([claim])

    assert stage.calls("CreateTags") == []
    assert len(claims.written) == 1


async def test_a_refusal_is_not_repeated_at_once(stage: Stage) -> None:
    claim, claims = await joined(stage), Claims()
    stage.patch(fail=[{"op": "CreateTags", "code": "UnauthorizedOperation", "status": 403}])
    tagging = Tagging(stage.adapter.calls, stage.adapter.inventory, "dovetail", claims, clock=time.time)  # type: ignore[arg-type]

    await tagging.keep([claim])
    await tagging.keep([claim])

    assert len(stage.calls("CreateTags")) == 1
    assert claims.written == []


async def test_a_claim_that_was_written_meanwhile_is_tried_a_second_later(stage: Stage) -> None:
    class Contended(Claims):
        async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
            if not self.written:
                self.written.append("conflict")
                raise Conflict("NodeClaim/default-a", "written meanwhile")
            return await super().patch(claim, change)

    claim, claims, now = await joined(stage), Contended(), [1000.0]
    tagging = Tagging(
        stage.adapter.calls,
        stage.adapter.inventory,
        "dovetail",
        claims,  # type: ignore[arg-type]
        clock=lambda: now[0],
    )

    again = await tagging.keep([claim])
    now[0] = again
    await tagging.keep([claim])

    assert again == 1001.0
    assert [each[0] for each in claims.written[1:]] == ["default-a"]
    assert len(stage.calls("CreateTags")) == 1


async def test_a_claim_whose_marks_are_taken_off_is_tagged_again_at_once_but_not_by_a_late_look(stage: Stage) -> None:
    """For a minute after a tagging nobody looked, whatever the claim said."""

    class Versioned(Claims):
        async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
            await super().patch(claim, change)
            return replace(claim, resource_version=str(int(claim.resource_version) + 1))

    claim, claims = replace(await joined(stage), resource_version="9"), Versioned()
    now = [1000.0]
    tagging = Tagging(
        stage.adapter.calls,
        stage.adapter.inventory,
        "dovetail",
        claims,  # type: ignore[arg-type]
        clock=lambda: now[0],
    )

    await tagging.keep([claim])
    await tagging.keep([claim])
    assert len(claims.written) == 1, "the view does not show version 10 yet"
    stage.server.control("PATCH", "instances/first", {"tags": {"Name": None}})
    await tagging.keep([replace(claim, resource_version="11")])

    assert len(claims.written) == len(stage.calls("CreateTags")) == 2
    now[0] += 10.0
    await tagging.keep([replace(claim, resource_version="3")])
    assert len(claims.written) == 3, "a restored API server shows version 12 much later"
