"""The cluster is known by the UID of its namespace kube-system, and another one behind its address is noticed."""

from pathlib import Path

import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.cluster_identity import ClusterIdentity
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.ports.failures import NotReadable
from tests.adapters.kube.fake_server import Reply, fake_server, says

PATH = "/api/v1/namespaces/kube-system"


def of(uid: object) -> Reply:
    return says(200, {"metadata": {"name": "kube-system", "uid": uid}})


async def troubles(tmp_path: Path, *replies: Reply) -> list[str]:
    """What is said after the first answer, and after each that follows."""
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, *replies)
        identity = ClusterIdentity(client)
        try:
            assert await identity.read() == identity.uid
            found = [identity.trouble()]
            for _ in replies[1:]:
                await identity.look()
                found.append(identity.trouble())
            return found
        finally:
            await client.close()


async def test_another_cluster_behind_the_address_is_noticed_until_the_first_is_back(tmp_path: Path) -> None:
    said = await troubles(tmp_path, of("a"), of("a"), of("b"), of("a"))

    assert said == ["", "", "the API server is of another cluster (b) than when this worker started (a)", ""]


async def test_a_server_that_does_not_answer_is_no_other_cluster(tmp_path: Path) -> None:
    assert await troubles(tmp_path, of("a"), says(503), says(403)) == ["", "", ""]


@pytest.mark.parametrize("uid", ["", None, 7])
async def test_a_namespace_without_a_uid_is_an_error_that_names_it(tmp_path: Path, uid: object) -> None:
    with pytest.raises(NotReadable, match=r"Namespace/kube-system: it has no metadata\.uid"):
        await troubles(tmp_path, of(uid))
