"""What is written into the status of CapacityBuffers, and by whom (PLC-211, PLC-214)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from dovetail.activities.provisioning.placement_publisher import PlacementPublisher
from dovetail.activities.upkeep.buffers import BufferUpkeep
from dovetail.model.objects.buffers import BufferStatus, CapacityBuffer
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Conflict, Failure, Unreachable
from tests.placement.buffer_worlds import a_buffer, with_buffers
from tests.placement.builders import a_joined_pair, a_snapshot, a_waiting_pod, placed


@dataclass
class Buffers:
    """The port: what was written, what fails first, and what a live read finds."""

    failures: list[Failure] = field(default_factory=list)
    live: CapacityBuffer | None = None
    written: list[tuple[CapacityBuffer, BufferStatus]] = field(default_factory=list)

    async def read(self, buffer: CapacityBuffer) -> CapacityBuffer | None:
        return self.live

    async def patch_status(self, buffer: CapacityBuffer, status: BufferStatus) -> CapacityBuffer:
        if self.failures:
            raise self.failures.pop(0)
        self.written.append((buffer, status))
        return replace(buffer, status=status)


@dataclass
class Notices:
    """The port: what was published."""

    published: list[Notice] = field(default_factory=list)

    async def publish(self, *notices: Notice) -> None:
        self.published += notices


def said(status: BufferStatus) -> list[tuple[str, str, str, float]]:
    return [(c.type, c.status, c.reason, c.changed) for c in status.conditions]


async def kept(snapshot: Snapshot, now: float = 5.0) -> dict[str, BufferStatus]:
    """What upkeep writes."""
    buffers = Buffers()
    writes = (await BufferUpkeep(buffers, lambda: now).look(snapshot)).due
    for write in writes:
        await write()
    return {buffer.name: status for buffer, status in buffers.written}


async def test_upkeep_writes_what_each_buffer_was_resolved_to_or_why_not() -> None:
    """PLC-211; and PLC-214 of buffers that no pass will see."""
    world = a_snapshot(
        **with_buffers(a_buffer("good"), a_buffer("lost", template="nowhere"), a_buffer("nothing", replicas=0))
    )

    found = await kept(world)

    assert {name: (s.template, s.template_generation, s.replicas) for name, s in found.items()} == {
        "good": ("small", 1, 3),
        "lost": (None, None, None),
        "nothing": ("small", 1, 0),
    }
    assert said(found["good"]) == [("ReadyForProvisioning", "True", "Resolved", 5.0)]
    assert said(found["lost"]) == [
        ("ReadyForProvisioning", "False", "PodTemplateNotFound", 5.0),
        ("Provisioning", "False", "NotReadyForProvisioning", 5.0),
    ]
    assert said(found["nothing"])[1] == ("Provisioning", "False", "BufferEmpty", 5.0)


async def test_upkeep_says_which_buffers_are_beyond_what_all_may_ask_for() -> None:
    found = await kept(a_snapshot(**with_buffers(*[a_buffer(f"b{number}", replicas=10_000) for number in range(6)])))

    assert [found[f"b{number}"].replicas for number in range(6)] == [*[10_000] * 5, None]
    assert said(found["b5"])[0] == ("ReadyForProvisioning", "False", "ResolutionFailed", 5.0)


async def test_what_stands_is_not_written_again_and_a_transition_keeps_its_time() -> None:
    """PLM-5."""
    buffer = a_buffer()
    first = (await kept(a_snapshot(**with_buffers(buffer))))["spare"]
    standing = replace(buffer, status=first)

    grown = (await kept(a_snapshot(**with_buffers(replace(standing, replicas=9))), now=99.0))["spare"]

    assert await kept(a_snapshot(**with_buffers(standing)), now=99.0) == {}
    assert (grown.replicas, said(grown)) == (9, said(first))


async def written(buffers: Buffers, world: Snapshot, notices: Notices | None = None) -> Sequence[tuple[str, str]]:
    """What the planner writes after a pass: buffer and reason."""
    await PlacementPublisher(notices or Notices(), buffers, lambda: 7.0).publish(world, placed(world))
    return [(buffer.resource_version, status.conditions[-1].reason) for buffer, status in buffers.written]


async def test_the_planner_writes_whether_the_room_stands() -> None:
    """The reason says whether the buffer's room exists or needs new nodes (PLC-214)."""
    full, none = (
        a_snapshot(nodes=[a_joined_pair("n1")], **with_buffers(a_buffer())),
        a_snapshot(**with_buffers(a_buffer())),
    )
    assert [reason for _, reason in await written(Buffers(), full)] == ["FitsExistingCapacity"]
    assert [reason for _, reason in await written(Buffers(), none)] == ["RequiresNewCapacity"]


async def test_a_buffer_that_was_written_meanwhile_is_judged_as_it_stands() -> None:
    """Upkeep writes the same status."""
    live = replace(a_buffer(), resource_version="2", status=BufferStatus(replicas=3))
    buffers = Buffers(failures=[Conflict("CapacityBuffer/spare", "changed")], live=live)

    found = await written(buffers, a_snapshot(**with_buffers(a_buffer(resource_version="1"))))

    assert found == [("2", "RequiresNewCapacity")]
    assert buffers.written[0][1].replicas == 3


async def test_a_status_that_cannot_be_written_is_logged_and_delays_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The next pass writes it."""
    buffers, notices = Buffers(failures=[Unreachable("cluster", "no answer")]), Notices()
    world = a_snapshot([a_waiting_pod("huge", "99")], **with_buffers(a_buffer("one"), a_buffer("two", replicas=1)))

    with caplog.at_level(logging.WARNING):
        await written(buffers, world, notices)

    assert [buffer.name for buffer, _ in buffers.written] == ["two"]
    assert "CapacityBuffer default/one: could not write whether its room exists" in caplog.text
    assert [(n.reason, n.name) for n in notices.published] == [("FailedScheduling", "huge")]


async def test_virtual_pods_get_no_notices() -> None:
    """PLC-213: neither where they are expected nor why they find no place."""
    notices = Notices()
    world = a_snapshot(
        nodes=[a_joined_pair("n1", cpu="1")], **with_buffers(a_buffer("one", replicas=1), a_buffer("two"))
    )
    await written(Buffers(), replace(world, catalogues={}), notices)
    assert [n.kind for n in notices.published] == ["NodePool"]


async def test_with_the_gate_closed_pods_get_their_notices_and_nothing_is_written() -> None:
    """There is no port to write to, although the snapshot has a buffer."""
    notices = Notices()
    world = a_snapshot([a_waiting_pod("huge", "99")], nodes=[a_joined_pair("n1")], **with_buffers(a_buffer()))

    await PlacementPublisher(notices, None, lambda: 7.0).publish(world, placed(world))

    assert [(n.reason, n.name) for n in notices.published] == [("FailedScheduling", "huge")]
