"""What new nodes must know about their cluster (AWS-157, AWS-40).

Given facts are used; missing ones are requested from EKS once and kept for the life of the process, except the version,
which an upgrade changes, and the certificates of the API server, which are renewed. A class's hash covers only given
facts: if it covered what the first launch learns, it would change then, and every node would drift.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, NamedTuple

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure

VersionNow = Callable[[], Awaitable[str]]


class ServerNow(NamedTuple):
    version: VersionNow | None = None  # None: not asked
    authority: Callable[[], str] = str  # the certificates that identify it, in base64; empty: as given


_log = logging.getLogger(__name__)

VERSION_SECONDS: Final = 300.0


class Cluster:
    """The facts, completed when first needed."""

    def __init__(
        self,
        calls: Calls,
        settings: AwsSettings,
        given: ClusterFacts,
        server: ServerNow | None,
        clock: Callable[[], float],
    ) -> None:
        self._calls, self._settings, self._given, self._facts = calls, settings, given, given
        self._server, self._clock = server or ServerNow(), clock
        self._version_at = clock()
        self._asking = asyncio.Lock()
        self._asked = self._asked_for_cidr = False

    @property
    def known(self) -> ClusterFacts:
        """What is known without asking EKS: the same before and after EKS was asked, and after a restart."""
        return self._given

    async def version(self) -> str:
        """Major.minor, read again every five minutes: after an upgrade an alias means other images (AWS-159)."""
        if not self._facts.version:
            await self._ask()
        reread = self._server.version or (None if self._given.version else self._version_of_eks)
        if reread is not None and self._clock() - self._version_at >= VERSION_SECONDS:
            self._version_at = self._clock()
            try:
                self._facts = replace(self._facts, version=await reread() or self._facts.version)
            except Failure as failure:
                _log.warning(
                    "the cluster's version cannot be read and is assumed to be %s still: %s",
                    self._facts.version,
                    failure,
                )
        return self._facts.version

    async def for_launch(self, *, with_cidr: bool) -> ClusterFacts:
        """Everything that user data needs; the services' addresses only if its family names them."""
        if not self._facts.endpoint:
            await self._ask()
        if with_cidr and not self._facts.service_cidr:
            await self._ask_for_cidr()
        return replace(self._facts, ca_bundle=self._server.authority() or self._facts.ca_bundle)

    async def _ask(self) -> None:
        async with self._asking:
            if self._asked:
                return
            cluster, facts = await self._described(), self._facts
            self._facts = replace(
                facts,
                version=facts.version or str(cluster.get("version", "")),
                endpoint=facts.endpoint or str(cluster.get("endpoint", "")),
                ca_bundle=facts.ca_bundle or str((cluster.get("certificateAuthority") or {}).get("data", "")),
            )
            self._asked = True

    async def _ask_for_cidr(self) -> None:
        async with self._asking:
            if self._asked_for_cidr:
                return
            network = (await self._described()).get("kubernetesNetworkConfig") or {}
            cidr = network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or ""
            self._facts = replace(self._facts, service_cidr=cidr)
            self._asked_for_cidr = True

    async def _version_of_eks(self) -> str:
        return str((await self._described()).get("version", ""))

    async def _described(self) -> Json:
        answer = await self._calls.call("eks", "DescribeCluster", name=self._settings.cluster)
        cluster: Json = answer["cluster"]
        return cluster
