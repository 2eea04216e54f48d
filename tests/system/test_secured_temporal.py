"""A worker and the commands over mutual TLS and with a codec, against the development server behind a TLS proxy.

What the server keeps is read beside the proxy: with the codec it names no pod, and the same records, decoded, do.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from google.protobuf.message import Message
from temporalio.client import Client, WorkflowHistory

from dovetail.answers.record.decoding import decode
from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.cli.main import main
from dovetail.connection.codec import load_codec, with_codec
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.temporal import connect
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.settings.settings import read_settings
from dovetail.worker.absence.connecting import until_connected
from testbed.faults.certificates import Authority
from tests.system.histories import executions, histories, replayer
from tests.system.secured import Secured, found_in, kept_by_the_server, names_of_pods
from tests.waiting import until
from worlds.stage.running import shared_stage
from worlds.stage.stage import Stage, has_condition, node_pool

pytestmark = pytest.mark.temporal

SMALL = "c-2x-amd64-linux"


@dataclass
class Scene:
    """A stage whose Temporal is secured."""

    stage: Stage
    secured: Secured

    async def dovetail(self, *arguments: str, **more: str) -> tuple[int, str, str]:
        """The CLI as an operator of that Temporal runs it."""
        return await self.stage.dovetail(*arguments, **{**self.secured.link, **self.secured.codec, **more})

    def reading(self, client: Client) -> Client:
        """That client, with the codec."""
        settings = self.secured.codec
        codec = load_codec(settings["DOVETAIL_PAYLOAD_CODEC"], Path(settings["DOVETAIL_CODEC_KEYS"]))
        config = client.config()
        config["data_converter"] = with_codec(codec)
        return Client(**config)


@asynccontextmanager
async def set_up(folder: Path, server: TemporalServer) -> AsyncIterator[Scene]:
    stage = shared_stage(folder, folder.name, server)
    secured = await Secured.before(server.address, folder)
    yield Scene(stage=stage, secured=secured)
    await stage.close()
    await secured.proxy.close()


@pytest_asyncio.fixture(loop_scope="session")
async def scene(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Scene]:
    async with set_up(tmp_path_factory.mktemp("secured"), temporal_server) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def refusing(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Scene]:
    """One for all that is refused: nothing comes of it that a later test could see."""
    async with set_up(tmp_path_factory.mktemp("refusing"), temporal_server) as made:
        yield made


async def test_a_launch_a_cancelled_disruption_and_a_termination_leave_no_name_of_a_pod(scene: Scene) -> None:
    stage = scene.stage
    stage.start_worker(False, **scene.secured.link, **scene.secured.codec)
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")

    marked = await _a_disruption_that_waits(stage)
    node = marked["status"]["nodeName"]
    cancelled = await scene.dovetail("cancel", node, "--reason", "not on a Friday")
    await stage.until(lambda: not stage.tainted() and len(stage.claims()) == 1, 90, "the node is given back")
    stage.world.delete("NodeClaim", marked["metadata"]["name"])
    gone = await stage.until(lambda: not _there(stage, marked), 90, "the claim is gone")

    client = await stage.client()
    pods, kept = names_of_pods(stage), await kept_by_the_server(client, stage.cluster)
    decoded = await _decoded(scene.reading(client), stage.cluster)
    assert cancelled[0] == 0 and ("called off" in cancelled[1] or "recorded" in cancelled[1]), cancelled
    assert gone and len(pods) >= 1 and len(kept) > 50
    assert found_in(pods, kept) == set()
    assert found_in(pods, decoded) != set(), "the same records, decoded, name pods: the search is able to find one"
    assert found_in({"not on a Friday"}, kept) == set()
    assert await _replayed(scene, client) > 0


async def _a_disruption_that_waits(stage: Stage) -> Json:
    """The node has drifted and its replacement never joins: the marked claim."""
    stage.world.never_join()
    pool = node_pool([SMALL])
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    return await stage.until(lambda: _marked(stage), 120, "the drifted node is marked and its replacement launched")


def _marked(stage: Stage) -> Json | None:
    owned = [c for c in stage.claims() if names.OWNER in (c["metadata"].get("annotations") or {})]
    replaced = any(has_condition(c, names.LAUNCHED) and c not in owned for c in stage.claims())
    return owned[0] if owned and replaced and stage.tainted() else None


def _there(stage: Stage, claim: Json) -> bool:
    return any(each["metadata"]["uid"] == claim["metadata"]["uid"] for each in stage.claims())


async def _decoded(client: Client, cluster: str) -> list[bytes]:
    events: list[Message] = [event for each in await histories(client, cluster) for event in each.events]
    await decode(client, *events)
    return [event.SerializeToString() for event in events]


async def _replayed(scene: Scene, client: Client) -> int:
    """How many runs the product replays from what is encrypted."""

    async def each() -> AsyncIterator[WorkflowHistory]:
        for history in await histories(client, scene.stage.cluster):
            yield history

    results = await replayer(scene.reading(client).data_converter).replay_workflows(
        each(), raise_on_replay_failure=True
    )
    assert not results.replay_failures
    return len(await executions(client, scene.stage.cluster))


async def test_the_commands_read_what_is_encrypted_and_say_that_the_link_is(scene: Scene) -> None:
    stage = scene.stage
    stage.start_worker(False, **scene.secured.link, **scene.secured.codec, POD_NAME="dovetail-0")
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    [claim] = stage.claims()
    name = claim["metadata"]["name"]

    # One after the other: seven starts at once leave the server no time to answer the doctor within its three seconds.
    commands = ("status",), ("history", name), ("doctor",), ("plan",)
    status, history, doctor, plan = [await scene.dovetail(*command) for command in commands]
    blind = [await scene.dovetail(*command, DOVETAIL_PAYLOAD_CODEC="") for command in commands[:3]]

    assert "encrypted, with a client certificate" in status[1] and "planning" in status[1]
    assert "launch an instance" in history[1] and "cannot be read" not in history[1]
    assert "encrypted, with a client certificate" in doctor[1] and "encoded by" in doctor[1]
    assert "@dovetail-0" in doctor[1], "workers are named by their pods"
    assert plan[0] == 0 and "could not be asked" not in plan[1]
    assert not any("Traceback" in each[2] for each in blind)
    assert "set DOVETAIL_PAYLOAD_CODEC to what the workers use" in blind[0][1]
    assert "cannot be read here" in blind[1][1] and name in blind[1][1]
    assert blind[2][0] == 1 and "set DOVETAIL_PAYLOAD_CODEC" in " ".join(blind[2][1].split())


async def test_another_key_of_the_same_name_is_one_line(scene: Scene, tmp_path: Path) -> None:
    stage = scene.stage
    stage.start_worker(False, **scene.secured.link, **scene.secured.codec)
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs")
    other = await Secured.before(stage.temporal.address, tmp_path)
    await other.proxy.close()

    code, out, err = await scene.dovetail("status", **other.codec)

    assert (code, err) == (0, "") and "'first' is another one than that which encrypted the payload" in out


REFUSALS = {
    "no certificate": "client certificate: set TEMPORAL_TLS_CLIENT_CERT_PATH",
    "another authority's certificate": "the client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH)",
    "a certificate that has ended": "(TEMPORAL_TLS_CLIENT_CERT_PATH)",
    "an authority that is not trusted": "set TEMPORAL_TLS_SERVER_CA_CERT_PATH",
    "a key of another certificate": "the client certificate and its key do not belong together",
    "another name": "set TEMPORAL_TLS_SERVER_NAME",
    "no TLS": "it may speak TLS only: set TEMPORAL_TLS",
    "TLS where none is spoken": "no TLS is spoken there",
    "a missing file": "cannot be read: No such file",
}


def wrong(scene: Scene, how: str) -> dict[str, str]:
    """The variables of a link that is wrong in that way; an empty one counts as not set."""
    secured = scene.secured
    strangers = Authority(scene.stage.folder / "strangers", "strangers")
    stranger, ended = strangers.client("stranger"), secured.authority.client("ended", ended=True)
    match how:
        case "no certificate":
            changed = {"TEMPORAL_TLS_CLIENT_CERT_PATH": "", "TEMPORAL_TLS_CLIENT_KEY_PATH": ""}
        case "another authority's certificate":
            changed = {
                "TEMPORAL_TLS_CLIENT_CERT_PATH": str(stranger.certificate),
                "TEMPORAL_TLS_CLIENT_KEY_PATH": str(stranger.key),
            }
        case "a certificate that has ended":
            changed = {
                "TEMPORAL_TLS_CLIENT_CERT_PATH": str(ended.certificate),
                "TEMPORAL_TLS_CLIENT_KEY_PATH": str(ended.key),
            }
        case "an authority that is not trusted":
            changed = {"TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(strangers.certificate)}
        case "a key of another certificate":
            changed = {"TEMPORAL_TLS_CLIENT_KEY_PATH": str(stranger.key)}
        case "another name":
            changed = {"TEMPORAL_TLS_SERVER_NAME": "somewhere.example"}
        case "no TLS":
            return {"TEMPORAL_ADDRESS": secured.proxy.address}
        case "TLS where none is spoken":
            changed = {"TEMPORAL_ADDRESS": scene.stage.temporal.address}
        case _:
            changed = {"TEMPORAL_TLS_CLIENT_CERT_PATH": str(scene.stage.folder / "missing.pem")}
    return {name: value for name, value in {**secured.link, **changed}.items() if value}


@pytest.mark.parametrize("how", REFUSALS)
async def test_a_link_that_is_refused_is_one_clear_line(
    refusing: Scene, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: the start of another one costs more than all that is asked here."""
    for name, value in refusing.stage.environment(**refusing.stage.where, **wrong(refusing, how)).items():
        monkeypatch.setenv(name, value)

    code = await asyncio.to_thread(main, ["status"])

    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert REFUSALS[how] in err and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize("how", REFUSALS)
async def test_a_start_waits_for_what_refuses_it_and_names_the_setting(
    refusing: Scene, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is before the server says the same while no server is behind it. Only a file that cannot be read ends it."""
    for name, value in refusing.stage.environment(**refusing.stage.where, **wrong(refusing, how)).items():
        monkeypatch.setenv(name, value)
    presence, stop = TemporalPresence(refusing.stage.cluster), asyncio.Event()
    waiting = asyncio.create_task(until_connected(partial(connect, read_settings()), presence, stop))
    if how == "a missing file":
        with pytest.raises(TemporalUnusable, match=REFUSALS[how]):
            await waiting
        return

    await until(lambda: waiting.done() or REFUSALS[how] in presence.problem, words="it says why it waits")
    stop.set()
    assert await waiting is None


async def test_a_certificate_that_is_renewed_is_used_without_a_restart(scene: Scene) -> None:
    """The old one is withdrawn as soon as the new one was seen: what is open with it is broken off."""
    stage, secured = scene.stage, scene.secured
    worker = stage.start_worker(False, **secured.link, **secured.codec)
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs")
    renewed = secured.authority.client("renewed")

    renewed.put_over(secured.pair)
    await stage.until(lambda: renewed.serial in secured.proxy.serials, 40, "the worker comes with its new certificate")
    before = len(secured.proxy.serials)
    secured.proxy.withdraw(secured.pair.serial)
    stage.deploy(1, "more")
    await stage.until(lambda: stage.running_pods() == 2, 120, "the next pod gets its node")

    code, out, _ = await scene.dovetail("doctor")
    assert worker.poll() is None
    assert set(secured.proxy.serials[before:]) <= {renewed.serial}
    assert code == 0, out
