"""What the cluster itself tells of what new nodes must know: its version, its DNS address, its CA (W-96, W-157).

Asked once by whoever opens the adapter. Rights or objects that are missing leave a fact out, with a line in the log;
EKS is asked for what is left.
"""

import logging
from dataclasses import replace
from typing import Final

from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.adapters.kube.client import Client, Request
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

_DNS: Final = "/api/v1/namespaces/kube-system/services/kube-dns"
_NOT_FOUND: Final = 404


async def facts_of(client: Client, given: ClusterFacts, *, eks_control_plane: bool = False) -> ClusterFacts:
    """`given` completed by what the API server says. With an EKS control plane its version is asked of EKS."""
    version = given.version or ("" if eks_control_plane else await version_of(client))
    return replace(given, version=version, dns_address=given.dns_address or await _dns(client))


async def version_of(client: Client) -> str:
    """Major.minor, as the API server says it now."""
    answer = await client.call(Request(method="GET", path="/version", subject="version of the cluster"))
    minor = "".join(c for c in str(answer.body.get("minor", "")) if c.isdigit())  # EKS says "36+"
    return f"{answer.body.get('major', '')}.{minor}"


async def _dns(client: Client) -> str:
    request = Request(method="GET", path=_DNS, subject="Service/kube-dns", expected=frozenset({_NOT_FOUND}))
    try:
        answer = await client.call(request)
    except Failure as failure:
        _log.warning("the cluster's DNS address is not known: %s", failure)
        return ""
    address = str((answer.body.get("spec") or {}).get("clusterIP") or "")
    if not address or address == "None":
        _log.warning("the cluster has no Service kube-system/kube-dns; nodes use their image's own DNS address")
        return ""
    return address
