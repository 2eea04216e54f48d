"""Every contract runs against every world. `world` is one implementation of the ports and the other side of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest
import yaml

from testbed.plane import ApiClient, ControlPlane, PlaneState, TestbedUnavailable, find_binaries, read_state
from testbed.plane.processes import identify
from tests.ports.worlds import aws_cloud as aws_cloud_world
from tests.ports.worlds import kwok_cloud_real, real, simulated
from tests.ports.worlds import simulated_cloud as simulated_cloud_world
from tests.ports.worlds.cloud_contract import CloudWorld
from tests.ports.worlds.contract import World
from tests.ports.worlds.kwok_cloud import KwokCloudWorld
from tests.unavailable import no_control_plane

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
async def installed_plane() -> AsyncIterator[ControlPlane]:
    """A control plane with our definitions installed."""
    try:
        binaries = find_binaries(print)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    folder = ROOT / ".dovetail" / "tests" / f"{os.getpid()}-ports" / "plane"
    plane = ControlPlane(folder, binaries)
    state = await plane.start(owner=identify(os.getpid()))
    try:
        async with ApiClient(state.kubeconfig, user_agent="dovetail-tests") as admin:
            await install_definitions(admin)
        yield plane
    finally:
        await plane.stop()
        shutil.rmtree(folder.parent, ignore_errors=True)


async def install_definitions(admin: ApiClient) -> None:
    """What `kubectl apply -f deploy/crds` does, and wait until they are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for file in sorted((ROOT / "deploy" / "crds").glob("*.yaml")):
        body = yaml.safe_load(file.read_text())
        answer = await admin.post(path, body)
        assert answer.status == 201, answer.text
        group, plural = body["spec"]["group"], body["spec"]["names"]["plural"]
        version = body["spec"]["versions"][0]["name"]
        await admin.wait_for(f"/apis/{group}/{version}/{plural}", lambda answer: answer.status == 200)


@pytest.fixture(scope="session")
def plane_state(installed_plane: ControlPlane) -> PlaneState:
    """Where it is, and where it writes its audit log."""
    state = read_state(installed_plane.folder)
    assert state is not None
    return state


@pytest.fixture(scope="session")
async def real_world(plane_state: PlaneState) -> AsyncIterator[World]:
    async with real.open_world(plane_state.kubeconfig) as world:
        yield world


@pytest.fixture(scope="session")
async def simulated_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with simulated.open_world(tmp_path_factory.mktemp("simulated") / "world.sqlite") as world:
        yield world


@pytest.fixture(scope="session", params=["simulated", pytest.param("real", marks=pytest.mark.cluster)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One after the other: all tests of a world stand together, so each is opened once."""
    yield cast(World, request.getfixturevalue(f"{request.param}_world"))


@pytest.fixture(scope="session")
async def simulated_cloud(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CloudWorld]:
    async with simulated_cloud_world.open_cloud(tmp_path_factory.mktemp("cloud") / "world.sqlite") as world:
        yield world


@pytest.fixture(scope="session")
async def aws_cloud(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CloudWorld]:
    async with aws_cloud_world.open_cloud(tmp_path_factory.mktemp("aws-cloud")) as world:
        yield world


@pytest.fixture(scope="session")
def kwok_cloud() -> CloudWorld:
    return KwokCloudWorld()


@pytest.fixture(scope="session")
async def kwok_real_cloud(plane_state: PlaneState) -> AsyncIterator[CloudWorld]:
    async with kwok_cloud_real.open_cloud(plane_state) as world:
        yield world


@pytest.fixture(
    scope="session", params=["simulated", "aws", "kwok", pytest.param("kwok_real", marks=pytest.mark.cluster)]
)
def cloud_world(request: pytest.FixtureRequest) -> Iterator[CloudWorld]:
    """One after the other, as `world`."""
    yield cast(CloudWorld, request.getfixturevalue(f"{request.param}_cloud"))
