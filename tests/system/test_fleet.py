"""`dovetail fleet` over a real Temporal server: no cluster, no kubeconfig, and reports that are encrypted."""

import base64
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from dovetail.answers.fleet.looking import UNTAKEN_SECONDS, fleet_of
from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.connection.codec import converter_of
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.reports import REPORT, ClusterReport
from dovetail.messages.workflow_ids import caretaker_id, task_queue
from dovetail.messages.workflow_types import CARETAKER
from dovetail.settings.settings import read_settings
from tests.waiting import until_answered

pytestmark = pytest.mark.temporal


def typed(server: TemporalServer, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Where nothing but Temporal can be found."""
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "PYTHONPATH")}
    environment |= {"KUBECONFIG": "/nowhere", "TEMPORAL_ADDRESS": server.address, **more}
    command = [sys.executable, "-m", "dovetail.cli.main", "fleet", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


async def start(client: Client, cluster: str, report: ClusterReport | None) -> None:
    """A Caretaker for which nobody works."""
    await client.start_workflow(
        CARETAKER,
        CaretakerInput(cluster=cluster),
        id=caretaker_id(cluster),
        task_queue=task_queue(cluster, "control"),
        memo={REPORT: report} if report is not None else None,
    )


def rows(done: "subprocess.CompletedProcess[str]", clusters: list[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["clusters"] if row["name"] in clusters}


async def test_clusters_are_listed_from_temporal_alone(temporal_server: TemporalServer, tmp_path: Path) -> None:
    (tmp_path / "first").write_text(base64.b64encode(os.urandom(32)).decode())
    (tmp_path / "current").write_text("first")
    keys = {
        "DOVETAIL_PAYLOAD_CODEC": "dovetail.codecs.aes_gcm:from_folder",
        "DOVETAIL_CODEC_KEYS": str(tmp_path),
    }
    plain = await temporal_server.client()
    secret = await Client.connect(temporal_server.address, data_converter=converter_of(read_settings(keys)))
    calm, closed, new = clusters = [f"{name}-{uuid.uuid4().hex[:8]}" for name in ("calm", "closed", "new")]
    report = ClusterReport(at=time.time(), version="0.2.0", nodes=3, price=1.0)
    await start(plain, calm, report)
    await start(secret, closed, report)
    await start(plain, new, None)

    async def all_listed() -> bool:
        """Lists of workflows follow a moment later."""
        return {*clusters} <= {row.name for row in (await fleet_of(plain, time.time())).clusters}

    await until_answered(all_listed)
    found, opened = (
        rows(typed(temporal_server, "-o", "json"), clusters),
        rows(typed(temporal_server, "-o", "json", **keys), clusters),
    )
    late = {row.name: row for row in (await fleet_of(plain, time.time() + UNTAKEN_SECONDS + 600)).clusters}
    checked = typed(temporal_server, "--check")
    for cluster in clusters:
        await plain.get_workflow_handle(caretaker_id(cluster)).terminate()

    assert (found[calm]["state"], found[calm]["report"]["nodes"], found[calm]["month"]) == ("fine", 3, 730.0)
    assert (found[closed]["state"], found[closed]["report"]) == ("unknown", None)
    assert "cannot be read" in found[closed]["note"] and "DOVETAIL_PAYLOAD_CODEC" in found[closed]["note"]
    assert (opened[closed]["state"], opened[closed]["report"]["nodes"]) == ("fine", 3)
    assert found[new]["state"] == "unknown"
    assert {late[name].state for name in clusters} == {"silent"}
    assert checked.returncode in (0, 4), "others may leave silent clusters behind in this namespace"
