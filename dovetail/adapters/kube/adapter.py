"""The whole of this adapter, wired: what the composition root opens, uses and closes.

Opening fails with what is missing: a kubeconfig (Misconfigured), a server (Unreachable) or credentials
(Unauthenticated).
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from dovetail.adapters.kube.client import Client, Observer, unobserved
from dovetail.adapters.kube.cluster_identity import ClusterIdentity
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.karpenter_lease import KarpenterLease
from dovetail.adapters.kube.objects.buffers import KubeCapacityBuffers
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.deployments import KubeDeployments
from dovetail.adapters.kube.objects.namespaces import KubeNamespaces
from dovetail.adapters.kube.objects.nodes import KubeNodes
from dovetail.adapters.kube.objects.notices import KubeNotices
from dovetail.adapters.kube.objects.overlays import KubeNodeOverlays
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kube.server_clock import ServerClock
from dovetail.adapters.kube.watching.thread import WatchThread
from dovetail.adapters.kube.watching.watch import Watch
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.background.supervised import stop, supervised
from dovetail.model.objects.watched_kinds import PLACEMENT
from dovetail.model.objects.workloads import Deployment
from dovetail.ports.clock import believed_time
from dovetail.ports.failures import NotSeenYet, Permanent

_log = logging.getLogger(__name__)

READY_SECONDS: Final = 60.0  # the first lists of 100,000 pods take about 10 s
REFUSED_SECONDS: Final = 15.0  # rights and definitions may be applied in the same moment as the worker


class _Running(Protocol):
    async def stop(self) -> None: ...


class _WatchTask:
    """The watch on the caller's own loop."""

    def __init__(self, watch: Watch) -> None:
        self._task = supervised("watch", watch.run)

    async def stop(self) -> None:
        await stop(self._task)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeAdapter:
    """Every port that the Kubernetes API answers. `view` and `lookups` are one object."""

    client: Client
    cache: Cache
    watch: Watch
    running: _Running
    clock: ServerClock
    karpenter: KarpenterLease
    identity: ClusterIdentity
    keeping: tuple[asyncio.Task[None], ...]
    view: CachedView
    lookups: CachedView
    claims: KubeNodeClaims
    nodes: KubeNodes
    pods: KubePods
    pools: KubeNodePools
    namespaces: KubeNamespaces
    overlays: KubeNodeOverlays
    buffers: KubeCapacityBuffers
    times: KubeTimeObjects
    deployments: KubeDeployments
    notices: KubeNotices

    @classmethod
    async def connect(
        cls,
        address: ClusterAddress,
        *,
        node_classes: Sequence[Kind] = (),
        gated: Iterable[Kind] = (),
        own_thread: bool = False,
        observe: Observer = unobserved,
    ) -> "KubeAdapter":
        """Check that the server answers, and start watching.

        `node_classes`: the cloud's kinds; `gated`: kinds watched because a feature gate is open; `own_thread`: the
        watch runs in a thread of its own."""
        clock = ServerClock()
        client = Client(address, observe, clock)
        identity = ClusterIdentity(client)
        believed = partial(believed_time, clock)
        karpenter = KarpenterLease(client, believed, own=address.lease_namespaces, expected=address.read_only)
        version = Request(method="GET", path="/version", subject="cluster")
        try:
            await client.open()
            await client.call(replace(version, subject=f"cluster {client.host}"))
            await karpenter.look()
        except BaseException:
            await client.close()
            raise
        cache = Cache((*CLUSTER_KINDS, *gated, *node_classes))
        watch = Watch(cache, Client(address, observe))
        running = _start(watch, own_thread=own_thread)
        deployments = KubeDeployments(client)
        view = CachedView(cache, clock.now, watch.problem_of, watch.silent_for, lambda: deployments.guard.stands)
        return cls(
            client=client,
            cache=cache,
            watch=watch,
            running=running,
            clock=clock,
            karpenter=karpenter,
            identity=identity,
            keeping=(
                supervised("server clock", partial(clock.keep, partial(client.call, version))),
                supervised("Karpenter's lease", karpenter.keep),
                supervised("the cluster's identity", identity.keep),
            ),
            view=view,
            lookups=view,
            claims=KubeNodeClaims(client),
            nodes=KubeNodes(client, view),
            pods=KubePods(client, clock.now),
            pools=KubeNodePools(client),
            namespaces=KubeNamespaces(client),
            overlays=KubeNodeOverlays(client),
            buffers=KubeCapacityBuffers(client),
            times=KubeTimeObjects(client, watch.was_listed),
            deployments=deployments,
            notices=KubeNotices(client, clock.now, node_classes),
        )

    async def ready(self) -> None:
        """Wait until all kinds have been listed and are watched.

        When that takes too long: NotSeenYet, with what is missing, where every pass reads one of the missing kinds;
        Permanent, where the server answers and refuses all of those, for which less time is granted; else what is
        missing is logged, and the rest goes on without it."""
        began = time.monotonic()
        while stale := self.view.stale():
            needed = [kind for kind in stale if kind in PLACEMENT]
            is_refused = self.watch.only_refused(needed)
            patience = REFUSED_SECONDS if is_refused else READY_SECONDS
            if (left := began + patience - time.monotonic()) <= 0:
                if not needed:
                    _log.error("starting without the kinds that only some objects need: %s", _summary(stale))
                    return
                failure = Permanent if is_refused else NotSeenYet
                raise failure("cluster view", _summary({kind: stale[kind] for kind in needed}))
            with self.cache.bell.listen() as heard:
                if self.watch.problem():
                    await asyncio.wait([heard], timeout=min(left, 1.0))

    async def prove_moves(self) -> None:
        """Try the policy of moves on some Deployment, again and again."""

        def some() -> tuple[str, str] | None:
            found: Deployment | None = next(iter(self.cache.objects("Deployment").values()), None)
            return (found.namespace, found.name) if found is not None else None

        await self.deployments.guard.keep(some)

    def raw_objects(self, kind: str) -> Mapping[str, Any]:
        """The raw objects of a NodeClass kind by name; NotSeenYet while the watch of that kind is broken."""
        self.view.insist(frozenset({kind}))
        return self.cache.objects(kind)

    async def close(self) -> None:
        """Stop watching and close all connections."""
        await stop(*self.keeping)
        await self.running.stop()
        await self.client.close()


def _summary(problems: Mapping[str, str]) -> str:
    """The first problem in full, and the names of the other kinds with one: twenty refusals have one cause."""
    first, *others = problems
    return problems[first] + (f" (and likewise: {', '.join(sorted(others))})" if others else "")


def _start(watch: Watch, *, own_thread: bool) -> _Running:
    if not own_thread:
        return _WatchTask(watch)
    thread = WatchThread(watch)
    thread.start()
    return thread
