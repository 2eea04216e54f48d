"""What the cluster itself can answer of what new nodes must know: its version and its DNS address (AWS-96, AWS-157).

Read once, before the adapter is opened. If an object or a right is missing, the fact is left out with a line in the
log; EKS is asked for the rest.
"""

import logging
from dataclasses import replace
from typing import Final

from dovetail.adapters.aws.cluster import VersionNow
from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.ports.failures import Permanent
from dovetail.ports.raw_objects import RawObjects

_log = logging.getLogger(__name__)

DNS_NAMESPACE: Final = "kube-system"
_DNS_SERVICE: Final = "kube-dns"


async def facts_of(services: RawObjects, version_now: VersionNow | None, given: ClusterFacts) -> ClusterFacts:
    """`given`, completed by what the API server answers. Without `version_now` EKS is asked for the version later.

    `services` are those of the namespace kube-system.
    """
    version = given.version or ("" if version_now is None else await version_now())
    return replace(given, version=version, dns_address=given.dns_address or await _dns(services))


async def _dns(services: RawObjects) -> str:
    try:
        service = await services.read(_DNS_SERVICE)
    except Permanent as failure:
        _log.warning("cannot read the cluster's DNS address: %s", failure)
        return ""
    address = str(((service or {}).get("spec") or {}).get("clusterIP") or "")
    if not address or address == "None":
        _log.warning("the cluster has no Service kube-system/kube-dns; nodes use their image's own DNS address")
        return ""
    return address
