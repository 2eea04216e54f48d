"""Where the API server is, and who we are to it: a kubeconfig, or the service account of the pod we run in.

A file that cannot be read becomes Misconfigured, which names it.
"""

import os
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import yaml

from dovetail.adapters.kube.official import ConfigException, client, config
from dovetail.ports.failures import Misconfigured

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

# Drains, waits and watches share one process. More requests at once would only wait in the server's own queue; with
# fewer, a plan of 100 claims would wait for its own watches.
_CONNECTIONS: Final = 100


def user_agent() -> str:
    """How our calls appear in the API server's audit log."""
    return f"dovetail/{metadata.version('dovetail')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """Which cluster is meant, and our name there. No kubeconfig: the cluster that this pod runs in. Several files are
    written as in PATH, and merged."""

    kubeconfig: Path | None = None
    context: str | None = None
    agent: str = field(default_factory=user_agent)
    read_only: bool = False  # every request that would write is refused here
    lease_namespaces: tuple[str, ...] = ()  # where a Karpenter's Lease counts beside kube-system and karpenter

    async def load(self) -> Any:
        """The library's configuration for it; Misconfigured if there is none."""
        settings = client.Configuration()
        settings.connection_pool_maxsize = _CONNECTIONS
        settings.retries = None  # callers decide what is tried again, and when; 0 would mean trying without an end
        try:
            if self.kubeconfig is not None:
                await self._load_file(settings)
            elif _SERVICE_ACCOUNT.exists():
                config.load_incluster_config(client_configuration=settings)
            else:
                raise Misconfigured(
                    "cluster", "neither a kubeconfig was named nor is this a pod with a service account"
                )
        except (ConfigException, yaml.YAMLError, KeyError, TypeError, ValueError, OSError) as error:
            subject = f"kubeconfig {self.kubeconfig or _SERVICE_ACCOUNT.parent}"
            raise Misconfigured(subject, " ".join(str(error).split())) from error
        return settings

    async def _load_file(self, settings: Any) -> None:
        named = str(self.kubeconfig or "").split(os.pathsep)
        there = [file for file in named if Path(file).is_file()]  # one of several may be missing, as with kubectl
        if not there:
            raise FileNotFoundError("there is no such file")
        await config.load_kube_config(
            config_file=os.pathsep.join(there),
            context=self.context,
            client_configuration=settings,
            persist_config=False,
        )
