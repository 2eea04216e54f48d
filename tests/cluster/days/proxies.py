"""What stands between the workers of a ground and their servers, so that each server can fall ill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.faults import HttpProxy, TcpProxy
from worlds.cluster.ground import Ground


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """One before each server. The test itself speaks to the servers directly."""

    api: HttpProxy
    aws: HttpProxy
    temporal: TcpProxy

    def before(self, ground: Ground) -> None:
        """Workers that start from now on go through them, wherever Temporal's server is now."""
        everything = ground.everything
        if everything.temporal_address != self.temporal.leads_to:
            self.temporal.lead_to(everything.temporal_address)
        through = {
            "KUBECONFIG": str(self.api.kubeconfig(everything.folder)),
            "AWS_ENDPOINT_URL": self.aws.url,
            "TEMPORAL_ADDRESS": self.temporal.address,
        }
        ground.everything = replace(everything, environment={**everything.environment, **through})


@asynccontextmanager
async def proxies_before(ground: Ground) -> AsyncIterator[Proxies]:
    """The ground's workers are started anew behind proxies; afterwards the next ones go directly again."""
    environment = ground.everything.environment
    proxies = Proxies(
        api=await HttpProxy.to_api_server(Path(environment["KUBECONFIG"])),
        aws=await HttpProxy.to(ground.cloud.endpoint),
        temporal=await TcpProxy.to(ground.everything.temporal_address),
    )
    ground.kill_workers()
    proxies.before(ground)
    try:
        ground.ensure_workers()
        yield proxies
    finally:
        ground.kill_workers()
        direct = {**environment, "TEMPORAL_ADDRESS": ground.everything.temporal_address}
        ground.everything = replace(ground.everything, environment=direct)
        for proxy in (proxies.api, proxies.aws, proxies.temporal):
            await proxy.close()
