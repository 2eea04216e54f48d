"""Does a control plane come up beside others, and go down without a trace, whatever happens in between?

The machine is shared: a process that is never stopped, or a port that two want, spoils every later run. So this asks of
the process table, not of what the plane says about itself.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
from pathlib import Path

import aiohttp
import pytest

from testbed.plane import (
    ApiClient,
    Binaries,
    ControlPlane,
    PlaneError,
    PlaneState,
    TestbedUnavailable,
    find_binaries,
    read_audit,
    read_state,
)
from testbed.plane.binaries import ENVIRONMENT_VARIABLE
from testbed.plane.parts import COMMANDS
from testbed.plane.plane import choose_ports, stop_abandoned
from testbed.plane.processes import ProcessIdentity, identify, stop_process
from testbed.plane.state import FILE_NAME, write_state

NODES = "/api/v1/nodes"


@pytest.mark.soak
@pytest.mark.cluster
async def test_a_second_plane_runs_beside_the_first_and_leaves_nothing_when_stopped(
    plane: PlaneState, testbed_binaries: Binaries, tmp_path: Path
) -> None:
    second = ControlPlane(tmp_path / "plane", testbed_binaries)

    state = await second.start()
    with pytest.raises(PlaneError, match="already running"):
        await second.start()
    async with ApiClient(state.kubeconfig) as api:
        nodes = await api.get(NODES)
    await second.stop()

    assert (nodes.status, nodes.body["items"]) == (200, [])
    assert state.server != plane.server
    assert len(state.missing_parts()) == len(state.processes) == 5
    assert read_state(second.folder) is None
    assert read_audit(state.audit_log)


@pytest.mark.cluster
async def test_a_plane_of_which_a_part_does_not_start_says_which_and_leaves_no_process(
    testbed_binaries: Binaries, tmp_path: Path
) -> None:
    broken = tmp_path / "binaries"
    broken.mkdir()
    for program in testbed_binaries.folder.iterdir():
        (broken / program.name).symlink_to(program)
    (broken / "kube-scheduler").unlink()
    state_file = tmp_path / "plane" / FILE_NAME
    wait = f"until grep -q kwok {state_file}; do sleep 0.02; done; cp {state_file} {tmp_path}"
    (broken / "kube-scheduler").write_text(f"#!/bin/sh\n{wait}\necho no room here\nexit 3\n")
    (broken / "kube-scheduler").chmod(0o755)

    with pytest.raises(PlaneError, match="kube-scheduler ended at once: no room here"):
        await ControlPlane(tmp_path / "plane", Binaries(folder=broken)).start()

    begun = read_state(tmp_path)
    assert begun is not None
    assert begun.missing_parts() == list(COMMANDS)
    assert read_state(tmp_path / "plane") is None


@pytest.mark.cluster
async def test_a_port_that_is_taken_meanwhile_is_given_up_for_another(
    testbed_binaries: Binaries, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = choose_ports()
        unlucky = dataclasses.replace(free, api=taken.getsockname()[1])
        choices = iter((unlucky, choose_ports()))
        plane = ControlPlane(tmp_path / "plane", testbed_binaries, choose_ports=lambda: next(choices))

        state = await plane.start()
        await plane.stop()

    assert next(choices, None) is None
    assert not state.server.endswith(str(unlucky.api))


@pytest.mark.soak
@pytest.mark.cluster
async def test_an_api_server_that_comes_back_has_the_same_data(testbed_binaries: Binaries, tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "plane", testbed_binaries)
    state = await plane.start()
    kept = "/api/v1/namespaces/kept"
    async with ApiClient(state.kubeconfig) as api:
        await api.post("/api/v1/namespaces", {"metadata": {"name": "kept"}})
        await plane.stop_part("kube-apiserver")
        with pytest.raises(aiohttp.ClientError):
            await api.get(kept)

        await plane.start_part("kube-apiserver")

        assert (await api.get(kept)).status == 200
    await plane.stop()


def test_a_named_folder_without_the_binaries_is_one_line_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))

    with pytest.raises(TestbedUnavailable, match=f"{ENVIRONMENT_VARIABLE} names .* which lacks etcd, kube-apiserver"):
        find_binaries(lambda line: None)


async def test_the_plane_of_a_killed_session_is_stopped_by_the_next(tmp_path: Path) -> None:
    orphan, process = _sleeper()
    killed = ProcessIdentity(pid=os.getpid(), began="before this process began")
    _pretend_state(tmp_path / "killed" / "plane", process, owner=killed)

    await stop_abandoned(tmp_path)

    assert orphan.wait(timeout=10) != 0
    assert not (tmp_path / "killed").exists()


async def test_the_plane_of_a_session_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    sleeper, process = _sleeper()
    _pretend_state(tmp_path / "running" / "plane", process, owner=identify(os.getpid()))

    await stop_abandoned(tmp_path)

    assert process.is_running()
    sleeper.kill()
    sleeper.wait()


async def test_a_process_id_that_another_process_has_now_is_not_signalled() -> None:
    sleeper, process = _sleeper()

    await stop_process(dataclasses.replace(process, began="when ours began"), grace_seconds=1)

    assert process.is_running()
    sleeper.kill()
    sleeper.wait()


def _sleeper() -> tuple[subprocess.Popen[bytes], ProcessIdentity]:
    child = subprocess.Popen(["sleep", "600"])
    identity = identify(child.pid)
    assert identity is not None
    return child, identity


def _pretend_state(folder: Path, process: ProcessIdentity, owner: ProcessIdentity | None) -> None:
    folder.mkdir(parents=True)
    anywhere = folder / "none"
    state = PlaneState(folder=folder, server="", kubeconfig=anywhere, audit_log=anywhere, kubectl=anywhere, owner=owner)
    write_state(dataclasses.replace(state.with_process("etcd", process), ready=True))
