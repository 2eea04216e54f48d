"""One control plane for all tests of a session, and a client for it; and one set of everything for whole-system tests.

Every test that asks for `plane` waits for it once. A plane that does not start is a failure, never a skip. A session
that was killed leaves its plane behind: the next one stops it, since the plane's state names its owner.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from testbed.plane import ApiClient, AuditLog, Binaries, ControlPlane, PlaneState
from testbed.plane.plane import stop_abandoned
from testbed.plane.processes import identify
from testbed.plane.state import read_state
from tests.cluster.flagships.wave import wave
from tests.grounds import all_servers, ground
from worlds.cluster.ground import Ground

__all__ = ["ground", "wave"]

SESSIONS = Path(__file__).parent.parent.parent / ".dovetail" / "tests"


@pytest.fixture(scope="session")
def plane_folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Kept when a test failed: the logs of the parts and the audit log are the evidence."""
    folder = SESSIONS / str(os.getpid()) / "plane"
    yield folder
    if not request.session.testsfailed:
        shutil.rmtree(folder.parent, ignore_errors=True)


@pytest.fixture(scope="session")
async def control_plane(testbed_binaries: Binaries, plane_folder: Path) -> AsyncIterator[ControlPlane]:
    await stop_abandoned(SESSIONS)
    plane = ControlPlane(plane_folder, testbed_binaries)
    await plane.start(owner=identify(os.getpid()))
    yield plane
    await plane.stop()


@pytest.fixture(scope="session")
def plane(control_plane: ControlPlane) -> PlaneState:
    """The control plane of this session. A test that changes what others see makes a plane of its own."""
    state = read_state(control_plane.folder)
    assert state is not None
    return state


@pytest.fixture
async def api(plane: PlaneState) -> AsyncIterator[ApiClient]:
    """The admin's client, by whose user agent a test finds its own writes in the audit log."""
    async with ApiClient(plane.kubeconfig, user_agent="dovetail-tests") as client:
        yield client


@pytest.fixture
def audit(plane: PlaneState) -> AuditLog:
    return AuditLog(plane.audit_log)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    """All of them, for whole-system tests."""
    async for started in all_servers(request, "system"):
        yield started
