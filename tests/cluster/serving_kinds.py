"""An API server that serves our kinds, for the tests that put manifests before it."""

from collections.abc import AsyncIterator

import pytest

from dovetail.api import crds
from dovetail.api.kinds import KINDS, ResourceKind
from testbed.plane import ApiClient, ApiResponse, PlaneState
from tests.api.manifests import Manifest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY_RUN = "?dryRun=All"
BY_KIND = {kind.kind: kind for kind in KINDS}


def path_of(kind: ResourceKind, name: str = "") -> str:
    place = "namespaces/default/" if kind.namespaced else ""
    return f"/apis/{kind.api_version}/{place}{kind.plural}" + (f"/{name}" if name else "")


@pytest.fixture(scope="session")
async def server(plane: PlaneState) -> AsyncIterator[ApiClient]:
    """A connection to an API server that serves our kinds."""
    async with ApiClient(plane.kubeconfig) as client:
        for kind in KINDS:
            await _install(client, kind)
        for kind in KINDS:
            await client.wait_for(path_of(kind), lambda answer: answer.status == 200)
        yield client


async def _install(client: ApiClient, kind: ResourceKind) -> None:
    """Create the CRD, or bring the one that another test left up to date."""
    answer = await client.post(DEFINITIONS, crds.crd(kind))
    if answer.status == 409:
        answer = await client.patch(f"{DEFINITIONS}/{kind.crd_name}", crds.crd(kind))
    assert answer.status in (200, 201), answer.text


async def dry_run(server: ApiClient, manifest: Manifest) -> ApiResponse:
    return await server.post(path_of(BY_KIND[manifest["kind"]]) + DRY_RUN, manifest)


@pytest.fixture
async def created(server: ApiClient) -> AsyncIterator[list[str]]:
    """Paths of objects that a test has created; they are gone afterwards."""
    paths: list[str] = []
    yield paths
    for path in paths:
        await server.delete(path)


async def create(server: ApiClient, created: list[str], manifest: Manifest) -> str:
    kind = BY_KIND[manifest["kind"]]
    answer = await server.post(path_of(kind), manifest)
    assert answer.status == 201, answer.text
    path = path_of(kind, manifest["metadata"]["name"])
    created.append(path)
    return path
