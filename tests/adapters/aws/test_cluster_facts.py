"""What new nodes must know is read once at a start: no answer of a moment stands for as long as a worker runs."""

from pathlib import Path

import pytest

from dovetail.adapters.aws.cluster_facts import DNS_NAMESPACE, facts_of
from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.adapters.kube.raw import KubeRawObjects
from dovetail.ports.failures import Retryable
from tests.adapters.kube.fake_server import GONE, says, talking

PATH = "/api/v1/namespaces/kube-system/services/kube-dns"
SERVICE = says(200, {"kind": "Service", "metadata": {"name": "kube-dns"}, "spec": {"clusterIP": "10.0.0.10"}})


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_api_server_is_asked_again_for_the_dns_address(tmp_path: Path, status: int) -> None:
    """Else all nodes that this worker launches would use their image's own."""
    async with talking(tmp_path) as (server, client):
        server.on(PATH, says(status), SERVICE)
        services = KubeRawObjects(client, "Service", "/api/v1/services", DNS_NAMESPACE)
        with pytest.raises(Retryable, match="Service/kube-dns"):
            await facts_of(services, None, ClusterFacts())
        assert (await facts_of(services, None, ClusterFacts())).dns_address == "10.0.0.10"


@pytest.mark.parametrize("status", [403, 404])
async def test_without_the_service_or_the_right_to_see_it_nodes_use_their_images_own_dns(
    tmp_path: Path, status: int
) -> None:
    async with talking(tmp_path) as (server, client):
        server.on(PATH, says(status, GONE))
        services = KubeRawObjects(client, "Service", "/api/v1/services", DNS_NAMESPACE)
        assert (await facts_of(services, None, ClusterFacts())).dns_address == ""
