"""A payload that was encrypted for one workflow is of no use in another, and no end of ours mistakes the place."""

import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.converter import (
    ActivitySerializationContext,
    WorkflowSerializationContext,
)

from dovetail.codecs.aes_gcm import PLACE, AesGcmCodec, KeyTrouble, from_folder
from dovetail.connection.codec import NamedCodec, converter_of, with_codec
from dovetail.settings.settings import read_settings
from dovetail.workflows.converter import UnreadablePayload
from tests.codecs.test_aes_gcm import SECRET, a_folder
from tests.replay.recorded import read_history, recorded_files
from tests.system.histories import replayer

HERE: Final = WorkflowSerializationContext(namespace="n", workflow_id="c/claim/web")
STEP: Final = ActivitySerializationContext(
    namespace="n",
    activity_id="1",
    activity_type="drain_node",
    activity_task_queue="c/waits",
    workflow_id="c/claim/web",
    workflow_type="TerminateNode",
    is_local=False,
)
ELSEWHERE: Final = WorkflowSerializationContext(namespace="n", workflow_id="c/claim/db")
NOT_ENCODED: Final = frozenset({"header", "search_attributes", "indexed_fields"})


async def test_what_was_encrypted_for_one_workflow_is_refused_in_another(tmp_path: Path) -> None:
    codec = from_folder(a_folder(tmp_path))
    [bound] = await codec.at(HERE.workflow_id).encode([SECRET])

    assert await codec.at(HERE.workflow_id).decode([bound]) == [SECRET]
    assert await codec.decode([bound]) == [SECRET], "a history and a list say no place"
    with pytest.raises(KeyTrouble, match="for workflow c/claim/web is used in workflow c/claim/db"):
        await codec.at(ELSEWHERE.workflow_id).decode([bound])


@pytest.mark.parametrize("place", [b"c/claim/db", b""])
async def test_the_place_of_a_payload_cannot_be_written_anew(tmp_path: Path, place: bytes) -> None:
    codec = from_folder(a_folder(tmp_path))
    [bound] = await codec.at(HERE.workflow_id).encode([SECRET])
    bound.metadata[PLACE] = place
    if not place:
        del bound.metadata[PLACE]

    for reader in (codec, codec.at(ELSEWHERE.workflow_id), codec.at(HERE.workflow_id)):
        with pytest.raises(KeyTrouble):
            await reader.decode([bound])


async def test_what_the_version_before_wrote_is_read_anywhere_unless_the_folder_says_places(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    [old] = await from_folder(folder).encode([SECRET])
    assert PLACE not in old.metadata
    (folder / "strict").touch()
    assert await from_folder(folder).at(HERE.workflow_id).decode([old]) == [SECRET]

    (folder / "strict").write_text("places\n")

    codec = from_folder(folder)
    assert await codec.decode([old]) == [SECRET], "it can still be looked at"
    with pytest.raises(KeyTrouble, match="for no workflow is used in workflow c/claim/web"):
        await codec.at(HERE.workflow_id).decode([old])


async def test_with_the_way_back_kept_the_version_before_can_read_what_is_written(tmp_path: Path) -> None:
    """As 0.1.0 does: the key authenticates its own name, and nothing beside it."""
    folder = a_folder(tmp_path)
    converter = converter_of(read_settings(settings(folder, DOVETAIL_KEEP_WAY_BACK="true")))

    [written] = await converter.with_context(HERE).encode(["text"])

    key = AESGCM(base64.b64decode((folder / "first").read_bytes()))
    plain = Payload.FromString(key.decrypt(written.data[:12], written.data[12:], b"first"))
    assert plain.data == b'"text"'
    [bound] = await converter_of(read_settings(settings(folder))).with_context(HERE).encode(["text"])
    assert await converter.with_context(HERE).decode([bound], [str]) == ["text"]


async def test_the_converter_of_a_worker_binds_what_it_writes(tmp_path: Path) -> None:
    converter = converter_of(read_settings(settings(a_folder(tmp_path))))
    [bound] = await converter.with_context(HERE).encode(["text"])

    assert await converter.with_context(STEP).decode([bound], [str]) == ["text"]
    with pytest.raises(UnreadablePayload, match="cannot decode what Temporal keeps: a payload that was encrypted for"):
        await converter.with_context(ELSEWHERE).decode([bound])


def settings(folder: Path, **more: str) -> dict[str, str]:
    codec = {"DOVETAIL_PAYLOAD_CODEC": "dovetail.codecs.aes_gcm:from_folder", "DOVETAIL_CODEC_KEYS": str(folder)}
    return {**codec, **more}


class Watched(AesGcmCodec):
    """Says for which places the SDK has it write and read."""

    written: list[str]
    read: list[str]

    def at(self, workflow_id: str) -> "Watched":
        made = Watched(self._keys, workflow_id)
        made.written, made.read = self.written, self.read
        return made

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        self.written += [self._place.decode()] * len(payloads)
        return await super().encode(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        self.read += [self._place.decode()] * len(payloads)
        return await super().decode(payloads)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({file.parent.name for file in recorded_files()}))
async def test_workflows_read_and_write_each_payload_at_the_place_that_it_is_for(tmp_path: Path, kind: str) -> None:
    """Of a child, of a workflow that is signalled, and of all else this workflow: in every recorded history."""
    (a_folder(tmp_path) / "strict").write_text("places")
    binding = from_folder(tmp_path)
    codec = Watched(binding._keys)
    codec.written, codec.read = [], []
    converter = with_codec(NamedCodec(codec, "test"))

    there: dict[str, set[str]] = {}  # whose payloads each history has

    async def bound_histories() -> AsyncIterator[WorkflowHistory]:
        for file in (each for each in recorded_files() if each.parent.name == kind):
            history, places = read_history(file), set[str]()
            for event in history.events:
                place = place_of(event, history.workflow_id)
                for payload in payloads_in(event):
                    [bound] = await binding.at(place).encode([payload])
                    payload.CopyFrom(bound)
                    places.add(place)
            codec.written.clear()
            codec.read.clear()
            there[file.name] = places
            yield WorkflowHistory(history.workflow_id, history.events)

    async with replayer(converter).workflow_replay_iterator(bound_histories()) as replays:
        async for replay in replays:
            [*_, (name, places)] = there.items()
            assert replay.replay_failure is None, name
            assert set(codec.read) <= places and "" not in codec.written, name
            assert places <= {*codec.read, *codec.written}, "children are written for"
    assert there


def place_of(event: HistoryEvent, workflow_id: str) -> str:
    """Whose payloads the event has."""
    attributes = getattr(event, cast(str, event.WhichOneof("attributes")))
    name = attributes.DESCRIPTOR.name
    if name == "StartChildWorkflowExecutionInitiatedEventAttributes":
        return str(attributes.workflow_id)
    if name.startswith(("ChildWorkflowExecution", "SignalExternalWorkflowExecutionInitiated")):
        return str(attributes.workflow_execution.workflow_id)
    return workflow_id


def payloads_in(message: Message) -> Iterator[Payload]:
    """Those that pass through a codec: no headers, no attributes of the index, and no markers, which are the core's."""
    if isinstance(message, Payload):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None or field.name in NOT_ENCODED or field.name.startswith("marker_recorded"):
            continue
        held = value.values() if field.message_type.GetOptions().map_entry else value
        for each in [held] if isinstance(held, Message) else list(held):
            if isinstance(each, Message):
                yield from payloads_in(each)
