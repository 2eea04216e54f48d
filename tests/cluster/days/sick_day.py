"""A day on which servers fall ill as well: slow, refusing, silent, cut off, restored from an older backup."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from dovetail.model import names
from testbed.faults import Fault, HttpProxy, TcpProxy, paused, skewed
from testbed.up import NODE_CLASS
from tests.cluster.days.budget_watch import BudgetWatch
from tests.cluster.days.day import POOLS, Day, Event
from tests.cluster.days.proxies import Proxies
from tests.cluster.system.backups import back_up_etcd, restore_etcd
from worlds.cluster.ground import Ground

LONGEST_ILLNESS: Final = 15.0
MOST_ORPHANS: Final = 3  # more than these are a person's matter: the collection stops (GCR-6)
KINDS: Final = ("/pods", "/nodes", "/nodeclaims", "/nodepools", "/csinodes", "/events", "/eviction", "/status")
LIMITS: Final = ("frontend.namespaceRPS", "frontend.namespaceRPS.visibility", "frontend.globalNamespaceRPS")
LOW: Final = (15, 30, 60)  # requests per second; 0 in place of them is no limit


class SickDay(Day):
    """The events of a day, and illnesses that last a while beside the next events."""

    def __init__(self, ground: Ground, seed: int, proxies: Proxies, budgets: BudgetWatch) -> None:
        super().__init__(ground, seed)
        self.proxies, self.watch = proxies, budgets
        self.illnesses: set[asyncio.Task[None]] = set()
        self.backed_up = self.restored = False

    @property
    def events(self) -> list[tuple[int, Event]]:
        """What may happen, and how often."""
        return [
            *super().events,
            (5, self.api_server_is_ill),
            (3, self.aws_is_ill),
            (3, self.temporal_is_ill),
            (2, self.limit_temporal),
            (2, self.freeze_a_worker),
            (2, self.start_a_worker_with_a_wrong_clock),
            (2, self.back_up),
            (2, self.restore),
        ]

    async def end(self) -> None:
        """Everybody recovers, and a person ends by hand what is too much for the collection."""
        await asyncio.gather(*self.illnesses)
        await self._limited_to(0)
        self.ground.kill_workers()  # among them those with a wrong clock
        await super().end()
        claims = {c["metadata"]["uid"] for c in await self.ground.claims()}
        live = [i for i in await self.ground.instances() if i["state"] != "terminated"]
        orphans = [i["id"] for i in live if i["tags"].get(names.CLAIM_UID_TAG) not in claims]
        if self.restored and len(orphans) > MOST_ORPHANS:
            print(f"  a person ends {orphans}, whose claims were forgotten", flush=True)
            for identity in orphans:
                self.ground.cloud.control("PATCH", f"instances/{identity}", {"state": "terminated"})

    async def _apply_pool(self, name: str) -> None:
        self.watch.allow(name, self.budgets[name])
        await super()._apply_pool(name)

    async def lose_the_database(self) -> str:
        self.ground.kill_workers()
        await self.ground.lose_database()
        self.proxies.before(self.ground)
        self.ground.ensure_workers()
        return "Temporal's database is lost"

    async def api_server_is_ill(self) -> str:
        kind = self.random.choice(KINDS)
        fault = self.random.choice(
            (
                Fault(path=kind, status=500),
                Fault(path=kind, hang=True),
                Fault(share=0.4, status=429, retry_after=1),
                Fault(share=0.4, status=503),
                Fault(share=0.3, drop=True),
                Fault(share=0.3, hang=True),
                Fault(delay=1.5),
                Fault(share=0.4, method="GET", cut_after=self.random.choice((1, 300, 5000))),
                Fault(drop=True),
            )
        )
        return self._ill("the API server", self.proxies.api, fault)

    async def aws_is_ill(self) -> str:
        fault = self.random.choice(
            (
                Fault(share=0.5, status=503),
                Fault(share=0.3, drop=True),
                Fault(share=0.3, hang=True),
                Fault(delay=2.0),
                Fault(share=0.4, cut_after=100),
                Fault(drop=True),
            )
        )
        return self._ill("AWS", self.proxies.aws, fault)

    async def temporal_is_ill(self) -> str:
        faults = (Fault(hang=True), Fault(drop=True), Fault(delay=0.3), Fault(cut_after=20_000))
        return self._ill("Temporal", self.proxies.temporal, self.random.choice(faults))

    def _ill(self, whose: str, server: HttpProxy | TcpProxy, fault: Fault) -> str:
        """From now on for a while, whatever happens meanwhile."""
        seconds = self.random.uniform(2.0, LONGEST_ILLNESS)

        async def ill() -> None:
            with server.sick(fault):
                await asyncio.sleep(seconds)

        self._begin(ill())
        return f"{whose} is ill for {seconds:.0f} s: {fault}"

    def _begin(self, illness: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(illness)
        self.illnesses.add(task)
        task.add_done_callback(self.illnesses.discard)

    async def limit_temporal(self) -> str:
        limit = self.random.choice((0, *LOW))
        await self._limited_to(limit)
        return f"Temporal's server starts again and answers {limit or 'any number of'} requests per second"

    async def _limited_to(self, limit: int) -> None:
        await self.ground.limit_temporal(dict.fromkeys(LIMITS, limit) if limit else {})
        self.proxies.before(self.ground)

    async def freeze_a_worker(self) -> str:
        running = [worker for worker in self.ground.workers if worker.poll() is None]
        if not running:
            return "no worker to freeze"
        worker, seconds = self.random.choice(running), self.random.uniform(2.0, LONGEST_ILLNESS)

        async def frozen() -> None:
            with paused(worker):
                await asyncio.sleep(seconds)

        self._begin(frozen())
        return f"worker {worker.pid} is frozen for {seconds:.0f} s"

    async def start_a_worker_with_a_wrong_clock(self) -> str:
        everything, seconds = self.ground.everything, self.random.choice((-300.0, -25.0, 25.0, 300.0))
        command = skewed(everything.worker_command(), seconds)
        self.ground.workers.append(everything.start_worker(command=command))
        return f"one more worker, its clock {seconds:+.0f} s off"

    async def back_up(self) -> str:
        await back_up_etcd(self.ground)
        self.backed_up = True
        return "etcd is backed up"

    async def restore(self) -> str:
        if not self.backed_up:
            return "no backup to restore"
        for pool in POOLS:
            self.watch.allow(pool, "100%")  # nobody knows how many the older pools let go
        self.watch.forget()
        await restore_etcd(self.ground)
        self.backed_up, self.restored = False, True
        await self.ground.apply(NODE_CLASS)
        for pool in POOLS:
            await self._apply_pool(pool)
        for name, pods in self.wanted.items():
            await self._deploy(name, pods)
        await self.ground.delete("PodDisruptionBudget", "web")
        self.held = False
        return "etcd is restored from the backup; people apply their pools and workloads again"

    async def let_workers_restart(self) -> None:
        """A worker that found no server at its start has ended; the kubelet starts it again."""
        for worker in self.ground.ended_workers():
            self.ground.workers.remove(worker)
            self.ground.workers.append(self.ground.everything.start_worker())
            print(f"     worker {worker.pid} ended with {worker.returncode} and is started again", flush=True)
