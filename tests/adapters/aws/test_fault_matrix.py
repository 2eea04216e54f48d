"""Every call of a life, each struck by every fault over HTTP: nothing launched twice, nothing left behind.

The life: a class is resolved, a claim is launched by the real step, its instance is tagged and ended by the real steps,
the class is deleted. An undisturbed life says which calls there are; each is then struck in a life of its own. Repeats
are those of the workflows: the same step again, until it ends or its deadline has passed. All facts are the ledger's.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.shared.every_step.temporal_errors import NotYet
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.adapters.aws.adapter import UpkeepCluster
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, Ec2NodeClassUpkeep
from dovetail.messages.outcomes import LaunchOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure
from testbed.cloud.server import CloudServer
from worlds.aws import CLUSTER, ClassStore, Notices, a_claim_of_ec2, open_adapter, settings_for
from worlds.fakes import FakeCatalogues, FakeClaims, FakeLookups, FakeNodes, World, departure_ports

pytestmark = pytest.mark.slow  # forty seconds of faults


READ_SECONDS: Final = 1.0
# How often a fault strikes: the SDK makes three attempts, so that our own code meets the last ones.
PERSISTENT: Final = 4
FAULTS: Final[dict[str, Json]] = {
    "refused": {"code": "UnauthorizedOperation", "message": "no", "status": 403, "times": 1},
    "refused as wrong": {"code": "InvalidParameterValue", "message": "no", "status": 400, "times": 1},
    "throttled": {"code": "RequestLimitExceeded", "status": 503, "times": PERSISTENT},
    "failed within AWS after the effect": {"code": "InternalError", "when": "after", "times": PERSISTENT},
    "timed out before the effect": {"answer": "late", "when": "before", "delay": 1.5, "times": PERSISTENT},
    "timed out after the effect": {"answer": "late", "when": "after", "delay": 1.5, "times": PERSISTENT},
    "answered late": {"answer": "late", "when": "after", "delay": 0.2, "times": 1},
    "dropped after the effect": {"answer": "drop", "when": "after", "times": PERSISTENT},
    "truncated": {"answer": "truncate", "times": PERSISTENT},
    "cut": {"answer": "cut", "times": PERSISTENT},
}
# What changes AWS is struck in every run; what only reads is struck by `make soak`.
READS: Final = ("Describe", "Get", "List")
QUICK: Final = ("dropped after the effect",)
PATIENT: Final = "timed out after the effect"  # each call that it strikes is waited for three times or more
FACTS: Final = replace(CLUSTER, endpoint="")  # so that EKS is asked, too


@dataclass(frozen=True, slots=True)
class Lived:
    """How the life of one claim has ended, by the cloud's own ledger."""

    outcome: LaunchOutcome
    launched: int
    alive: int
    templates: int
    profiles: int
    class_left: bool
    calls: frozenset[tuple[str, bool]]  # operation, dry run

    @property
    def faults(self) -> list[str]:
        """What is wrong with it."""
        found = [] if self.launched <= 1 else [f"launched {self.launched}"]
        left = {"instances": self.alive, "templates": self.templates, "profiles": self.profiles}
        found += [f"{number} {kind} left" for kind, number in left.items() if number]
        if self.class_left:
            found.append("the class is left")
        if self.outcome.kind == "launched" and self.launched != 1:
            found.append("the outcome is launched, and nothing was launched")
        if self.outcome.kind != "launched" and not self.outcome.message:
            found.append(f"{self.outcome.kind} without a reason")
        return found


class Life:
    """One class and one claim, from beginning to end."""

    def __init__(self, server: CloudServer, calls: Calls, facts: ClusterFacts = FACTS) -> None:
        self.server, self.world, self.classes = server, World(), ClassStore()
        self.adapter = open_adapter(server, self.classes, calls, facts)
        now = ClusterNow(claims=lambda: tuple(self.world.claims.values()), pools=tuple)
        claims, nodes = FakeClaims(self.world), FakeNodes(self.world)
        kept = UpkeepCluster(objects=self.classes, claims=claims, nodes=nodes, notices=Notices(), now=now)
        self.upkeep: Ec2NodeClassUpkeep = self.adapter.node_class_upkeep(kept)
        known = KnownClaims(FakeLookups(self.world), claims)
        self.launching = LaunchInstance(
            known, self.adapter.cloud, Notices(), self.world.now, catalogues=FakeCatalogues()
        )
        departing = BeginAndEndDeparture(departure_ports(self.world, cloud=self.adapter.cloud), self.world.now)
        self.terminating = TerminateInstance(known, self.adapter.cloud, self.world.now, departing)

    async def lived(self) -> Lived:
        since = self.server.control("GET", "ledger/last")
        self.classes.apply()
        await self._keep(lambda: self.classes.condition("Ready")[0] == "True")
        claim = replace(a_claim_of_ec2(), created=self.world.clock, resource_version="1")
        self.world.put(claim)
        outcome = await self._launch(ClaimRef(name=claim.name, uid=claim.uid, pool="default"))
        if outcome.kind == "launched":
            self.world.put(replace(self.world.claims[claim.name], node_name="node-1"))
            await self._keep(lambda: "karpenter.k8s.aws/tagged" in self.world.claims[claim.name].annotations)
        await self._terminate(claim.name)
        self.world.claims.clear()
        self.classes.delete()
        await self._keep(lambda: not self.classes.objects)
        await self.adapter.close()
        return self._account(outcome, since)

    async def _keep(self, settled: Any) -> None:
        """Rounds of upkeep; what would be due later is due at once."""
        for _ in range(10):
            await self.upkeep.keep()
            if settled():
                return
            for due in self.upkeep._due.values():
                due.at = 0.0
            for task in self.upkeep._parts.tasks:
                getattr(task, "_later", {}).clear()

    async def _launch(self, ref: ClaimRef) -> LaunchOutcome:
        """The step as often as it takes; a minute passes between two tries."""
        for _ in range(10):
            try:
                return await self.launching.launch_instance(ref)
            except Failure:
                self.world.clock += 60.0
        raise AssertionError("the launch never ends")

    async def _terminate(self, name: str) -> None:
        claim = replace(self.world.claims[name], deleting_since=self.world.clock)
        self.world.put(claim)
        departure = Departure(claim=ClaimRef(name=name, uid=claim.uid, pool="default"), provider_id=claim.provider_id)
        for _ in range(60):
            try:
                await self.terminating.terminate_instance(departure)
                return
            except (Failure, NotYet):
                await asyncio.sleep(0.05)
        raise AssertionError("the termination never ends")

    def _account(self, outcome: LaunchOutcome, since: int) -> Lived:
        calls = self.server.calls(since=since)
        shown = self.server.control("GET", "instances?after=0&wait=0")["instances"]
        return Lived(
            outcome=outcome,
            launched=len({each for call in calls for each in call["instances"]}),
            alive=sum(each["state"] not in ("terminated", "shutting-down") for each in shown),
            templates=_left(calls, "CreateLaunchTemplate", "DeleteLaunchTemplate", "LaunchTemplateName"),
            profiles=_left(calls, "CreateInstanceProfile", "DeleteInstanceProfile", "InstanceProfileName"),
            class_left=bool(self.classes.objects),
            calls=frozenset((call["op"], bool(call["dryRun"])) for call in calls),
        )


def _left(calls: list[Json], made: str, gone: str, key: str) -> int:
    """Names that were made and not deleted after that, by what really happened."""
    names: set[str] = set()
    for call in calls:
        if not call["error"] and not call["dryRun"]:
            if call["op"] == made:
                names.add(call["input"][key])
            if call["op"] == gone:
                names.discard(call["input"][key])
    return len(names)


@pytest.fixture(scope="module")
async def impatient(aws_server: CloudServer) -> AsyncIterator[Calls]:
    """Clients that wait for an answer no longer than a moment."""
    calls = Calls(
        settings_for(aws_server, read_seconds=READ_SECONDS, threads=8),
        agent="dovetail",
        observe=called,
        read_only=False,
    )
    yield calls
    await calls.close()


async def one_life(server: CloudServer, calls: Calls, rule: Json | None = None) -> Lived:
    server.control("POST", "reset")
    server.control("PATCH", "world", {"runSeconds": 0, "shutdownSeconds": 0.1, "fail": [rule] if rule else []})
    return await Life(server, calls).lived()


@pytest.fixture(scope="module")
async def undisturbed(aws_server: CloudServer, impatient: Calls) -> Lived:
    return await one_life(aws_server, impatient)


def test_an_undisturbed_life_launches_once_and_leaves_nothing(undisturbed: Lived) -> None:
    assert undisturbed.outcome.kind == "launched"
    assert undisturbed.faults == []
    assert len(undisturbed.calls) > 15


@pytest.mark.parametrize(
    ("fault", "reads"),
    [
        *(pytest.param(name, False, marks=() if name in QUICK else pytest.mark.soak) for name in FAULTS),
        *(pytest.param(name, True, marks=pytest.mark.soak) for name in FAULTS),
    ],
)
async def test_whatever_fails_in_a_call_nothing_is_launched_twice_and_nothing_is_left(
    aws_server: CloudServer, impatient: Calls, undisturbed: Lived, fault: str, *, reads: bool
) -> None:
    """DUR-1, AWS-46, AWS-181; every claim ends launched, or with a reason."""
    struck = [call for call in sorted(undisturbed.calls) if call[0].startswith(READS) == reads]

    assert struck
    assert await wrong_where_struck(aws_server, impatient, fault, struck) == {}


async def test_a_launch_or_an_end_whose_answer_is_not_waited_for_is_done_once(
    aws_server: CloudServer, impatient: Calls, undisturbed: Lived
) -> None:
    """DUR-1: of all that times out after its effect these would cost most; the others are played by `make soak`."""
    struck = [("CreateFleet", False), ("TerminateInstances", False)]

    assert undisturbed.calls >= set(struck)
    assert await wrong_where_struck(aws_server, impatient, PATIENT, struck) == {}


async def wrong_where_struck(
    server: CloudServer, calls: Calls, fault: str, struck: list[tuple[str, bool]]
) -> dict[tuple[str, bool], list[str]]:
    """What is wrong after a life in which this call was struck by the fault, for each call."""
    lives = {
        (operation, dry_run): await one_life(server, calls, {"op": operation, "dryRun": dry_run, **FAULTS[fault]})
        for operation, dry_run in struck
    }
    return {call: lived.faults for call, lived in lives.items() if lived.faults}
