"""The annotation dovetail.sh/cancel: who is told, what is written, and which Event answers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption import await_disruption_plan as disrupting
from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.upkeep.cancels import CancelUpkeep
from dovetail.adapters.kubernetes_json.parsing.managers import manager_of_annotation
from dovetail.disruption.choose import choose
from dovetail.disruption.decision_snapshot import for_disruption
from dovetail.disruption.explain import explain_node
from dovetail.disruption.nodes.resting import called_off, read_rest, rest_text
from dovetail.disruption.revalidate import Invalid
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.outcomes import Drop, Go
from dovetail.messages.plans import DisruptionPlan, Target
from dovetail.messages.requests import DisruptionRequest
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.own.claim_memory import CalledOff, with_memory
from dovetail.model.own.policies import Freeze
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from tests.activities.test_disrupting import a_held_plan
from tests.disruption.second_look import revalidate
from tests.lifecycle.objects import a_joined_claim
from worlds.disruption import NOW, a_pair, a_world
from worlds.fakes import FakeClaims, FakeNotices, World, followers

ASKED = {names.CANCEL: "not now"}


class Signals:
    """A client that notes the signals that are sent; `gone`: the workflow has ended."""

    def __init__(self, gone: bool = False) -> None:
        self.sent: list[tuple[str, ...]] = []
        self.gone = gone
        self.identity = ""

    def get_workflow_handle(self, workflow_id: str) -> "Signals":
        self.identity = workflow_id
        return self

    async def signal(self, name: str, args: Sequence[str], rpc_timeout: timedelta | None = None) -> None:
        if self.gone:
            raise RPCError("it has ended", RPCStatusCode.NOT_FOUND, b"")
        self.sent.append((self.identity, name, *args))


class Answered:
    """A world with one claim, and the upkeep that answers it."""

    def __init__(self, claim: NodeClaim, *, gone: bool = False, freeze: Freeze | None = None) -> None:
        self.world, self.signals = World(), Signals(gone)
        self.world.put(claim)
        self.freezes = {freeze.name: freeze} if freeze is not None else {}
        self.upkeep = CancelUpkeep("c", FakeClaims(self.world), FakeNotices(self.world), self.world.now)

    async def look(self) -> Look[Write]:
        snapshot = Snapshot(now=self.world.clock, claims=dict(self.world.claims), freezes=self.freezes)
        found = await self.upkeep.look(snapshot)
        environment = ActivityEnvironment(client=cast(Client, self.signals))
        for write in found.due:
            await environment.run(cast(Any, write))
        return found

    @property
    def claim(self) -> NodeClaim:
        return self.world.claims["pool-1"]

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(notice.reason, notice.message) for notice in self.world.notices]


async def test_a_claim_that_nothing_disrupts_rests_and_an_event_says_who_asked() -> None:
    found = Answered(a_joined_claim(annotations=ASKED))

    await found.look()
    await found.look()

    assert names.CANCEL not in found.claim.annotations
    assert (read_rest(found.claim).until, read_rest(found.claim).reason) == (1300.0, "Empty")
    assert found.events == [
        (
            "DisruptionCancelled",
            "Its disruption is called off: not now (by kubectl-annotate). It rests until 1970-01-01T00:21:40Z",
        )
    ]
    assert found.signals.sent == []


async def test_a_marked_claim_s_disruption_is_told_once_and_answered_when_the_mark_is_off() -> None:
    found = Answered(a_joined_claim(annotations={**ASKED, names.OWNER: "c/disrupt/1"}))

    first = await found.look()
    await found.look()
    assert found.signals.sent == [("c/disrupt/1", "cancel", "not now", "kubectl-annotate")]
    assert (first.again, found.events) == (None, [])
    assert names.CANCEL in found.claim.annotations

    rested = replace(found.claim, annotations={**ASKED, names.REST: "1300/1/Drifted/cancelled"})
    found.world.put(rested)
    await found.look()

    said = with_memory({}, called_off=CalledOff(why="not now", by="kubectl-annotate"))
    assert dict(found.claim.annotations) == {names.REST: "1300/1/Empty/cancelled", **said}
    assert [reason for reason, _ in found.events] == ["DisruptionCancelled"]


async def test_a_disruption_that_does_not_answer_is_told_again() -> None:
    found = Answered(a_joined_claim(annotations={**ASKED, names.OWNER: "c/disrupt/1"}))

    await found.look()
    assert (await found.look()).again == 1020.0
    found.world.clock = 1020.0
    await found.look()

    assert len(found.signals.sent) == 2


async def test_another_clusters_disruption_is_told_nothing() -> None:
    found = Answered(a_joined_claim(annotations={**ASKED, names.OWNER: "other/disrupt/1"}))

    await found.look()

    assert found.signals.sent == []


async def test_a_mark_whose_owner_has_ended_is_left_to_the_caretaker() -> None:
    found = Answered(a_joined_claim(annotations={**ASKED, names.OWNER: "c/disrupt/1"}), gone=True)

    await found.look()

    assert names.CANCEL in found.claim.annotations and found.events == []


async def test_a_claim_that_is_being_deleted_is_told_that_it_is_too_late() -> None:
    found = Answered(a_joined_claim(annotations={names.CANCEL: ""}, deleting_since=900.0))

    await found.look()

    assert names.CANCEL not in found.claim.annotations and names.REST not in found.claim.annotations
    assert found.events == [
        ("DisruptionCancelTooLate", "It is being deleted already: no reason given (by kubectl-annotate)")
    ]


@pytest.mark.parametrize("before", ["failed", "cancelled"])
async def test_a_cancel_is_obeyed_on_a_node_that_rests_from_another_disruption(before: str) -> None:
    """It has become empty since that one was undone, and an emptiness plan waits for its second look."""
    pair = a_pair("n1")
    rests = {names.REST: rest_text(pair.claim, NOW - 60.0, "Drifted", cancelled=before == "cancelled")}
    claim = replace(pair.claim, annotations={**pair.claim.annotations, **rests, **ASKED})
    if before == "failed":
        claim = replace(claim, annotations={**claim.annotations, names.REST: f"{NOW + 1000.0:.0f}/7/Drifted"})
    plan = choose(a_world([pair]), DisruptionSettings(), never)
    assert isinstance(plan, DisruptionPlan)
    found = Answered(claim)
    found.world.clock = NOW

    await found.look()

    [answered] = found.world.claims.values()
    off = called_off(answered, NOW)
    assert names.CANCEL not in answered.annotations
    assert off == CalledOff(why="not now", by="kubectl-annotate"), "the mark, and the second look of a worker"
    until = read_rest(answered).until
    assert until >= read_rest(claim).until and found.events[0][1].endswith(format_time(until))
    later = for_disruption(a_world([replace(pair, claim=answered)]), {}, frozenset())
    assert isinstance(revalidate(plan, later, DisruptionSettings()), Invalid)
    assert not isinstance(choose(later, DisruptionSettings(), never), DisruptionPlan)


async def test_a_plan_that_waits_is_dropped_at_once_where_one_of_its_nodes_is_called_off() -> None:
    nothing = cast(Any, None)
    kept: list[tuple[str, CalledOff]] = []

    async def keep(plan: DisruptionPlan, target: Target, off: CalledOff) -> None:
        assert target in plan.commands[0].targets
        kept.append((target.claim, off))

    step = AwaitDisruptionPlan(
        Snapshots(nothing, nothing), nothing, DisruptionSettings(), lambda: 1.0, followers(called_off=keep)
    )
    held = [replace(a_held_plan(name), due=due) for name, due in (("due", 0.5), ("later", 9.0))]
    request = DisruptionRequest(must_see=(), nominations=(), quiet_until=0.0, held=tuple(held))

    def a_snapshot(uid: str = "later", **annotations: str) -> Snapshot:
        claim = a_joined_claim("later", uid=uid, annotations=annotations)
        return Snapshot(now=1.0, claims={"later": claim})

    rests = {names.REST: "100/1/Empty"}
    for annotations, by in (
        ({names.CANCEL: "not now"}, "annotation"),
        ({names.CANCEL: "not now", names.CANCEL_BY: "alice"}, "alice"),
        ({**rests, names.REMEMBERED: '{"v":1,"entries":[{"called_off":{"why":"not now","by":"alice"}}]}'}, "alice"),
        (rests, ""),  # after a failure: no person has said anything
    ):
        dropped = await step._judge_due(a_snapshot(**annotations), request, until=2.0)
        assert isinstance(dropped, Drop) and dropped.held == 1
        assert dropped.why == (f"later: called off: not now (by {by})" if by else "later: it rests")
        assert kept == ([("later", CalledOff(why="not now", by=by))] if by else [])
        kept.clear()
    for other in (a_snapshot("another", **ASKED), a_snapshot(**{names.REST: "0/1/Empty"})):
        assert not disrupting._called_off(held[1].plan, other)


async def test_a_plan_that_nobody_called_off_goes_when_it_is_due() -> None:
    world = a_world([a_pair("n1")])
    nothing = cast(Any, None)
    step = AwaitDisruptionPlan(
        Snapshots(nothing, nothing), nothing, DisruptionSettings(), lambda: world.now, followers()
    )
    answer, _ = await step._choose(world)
    held = replace(a_held_plan("n1"), plan=cast(Any, answer).plan, due=world.now)
    request = DisruptionRequest(must_see=(), nominations=(), quiet_until=0.0, held=(held,))

    assert isinstance(await step._judge_due(world, request, until=world.now), Go)


def test_the_author_is_the_last_manager_of_the_annotation() -> None:
    def entry(manager: str, time: str, *annotations: str) -> dict[str, Any]:
        fields: dict[str, Any] = {f"f:{name}": {} for name in annotations}
        return {"manager": manager, "time": time, "fieldsV1": {"f:metadata": {"f:annotations": fields}}}

    entries = [
        entry("kubectl-annotate", "2026-01-02T00:00:00Z", names.CANCEL),
        entry("argocd", "2026-01-01T00:00:00Z", names.CANCEL, names.OWNER),
        entry("dovetail", "2026-01-03T00:00:00Z", names.OWNER),
    ]
    assert manager_of_annotation({"metadata": {"managedFields": entries}}, names.CANCEL) == "kubectl-annotate"
    assert manager_of_annotation({"metadata": {}}, names.CANCEL) == ""
    spoilt = [{"manager": None}, {"fieldsV1": None}, {"fieldsV1": {"f:metadata": None}}]
    assert manager_of_annotation({"metadata": {"managedFields": spoilt}}, names.CANCEL) == ""


async def test_a_reason_that_is_too_long_is_cut() -> None:
    found = Answered(a_joined_claim(annotations={names.CANCEL: "x" * 200_000, names.OWNER: "c/disrupt/1"}))

    await found.look()

    [sent] = found.signals.sent
    assert sent[2:] == ("x" * 300, "kubectl-annotate")


async def test_the_author_whom_the_command_has_written_down_is_named_and_taken_off_with_the_request() -> None:
    asked = {names.CANCEL: "asked (by bob) in chat", names.CANCEL_BY: "alice"}
    found = Answered(a_joined_claim(annotations=asked))

    await found.look()

    assert not {names.CANCEL, names.CANCEL_BY} & set(found.claim.annotations)
    assert "asked (by bob) in chat (by alice). It rests" in found.events[0][1]


def marked(reason: str = "Drifted", **fields: Any) -> NodeClaim:
    said = Condition(type=names.DISRUPTION_REASON, status="True", reason=reason)
    claim = a_joined_claim(annotations={names.OWNER: "c/disrupt/1"}, **fields)
    return replace(claim, conditions=(*claim.conditions, said))


UNDO = Freeze(
    name="peak", begins=1000.0, until=2000.0, what=frozenset({"disruption"}), undoes=True, reason="peak season"
)


async def test_a_freeze_that_undoes_calls_off_what_has_begun_once_and_a_freeze_that_does_not_leaves_it() -> None:
    for freeze, sent in (
        (UNDO, [("c/disrupt/1", "cancel", "peak season", "Freeze peak")]),
        (replace(UNDO, undoes=False), []),
    ):
        found = Answered(marked(), freeze=freeze)

        await found.look()
        await found.look()

        assert found.signals.sent == sent


async def test_a_freeze_calls_off_only_what_it_is_about_and_what_can_be_undone() -> None:
    leaving = marked(deleting_since=990.0, finalizers=(names.TERMINATION_FINALIZER,))
    others = marked()
    others = replace(others, annotations={names.OWNER: "other/disrupt/1"})
    for claim in (marked("Expired"), leaving, others, a_joined_claim(annotations={names.OWNER: "c/launch/1"})):
        found = Answered(claim, freeze=UNDO)
        await found.look()
        assert found.signals.sent == []
    expiry = Answered(marked("Expired"), freeze=replace(UNDO, what=frozenset({"expiry"})))
    await expiry.look()
    assert len(expiry.signals.sent) == 1


async def test_a_reason_of_a_newer_version_keeps_no_other_disruption_from_being_called_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What an older worker does not know is left to one that does, and said once."""
    odd = replace(marked("Weathered"), name="pool-0", uid="c-0")
    found = Answered(marked(), freeze=UNDO)
    found.world.put(odd)

    await found.look()
    await found.look()

    assert found.signals.sent == [("c/disrupt/1", "cancel", "peak season", "Freeze peak")]
    said = [record.getMessage() for record in caplog.records if "pool-0" in record.getMessage()]
    assert said == [
        "NodeClaim pool-0 is disrupted as Weathered, a reason that this version does not know: no Freeze calls it off"
    ]


async def test_a_freeze_is_looked_at_when_it_begins() -> None:
    found = Answered(marked(), freeze=replace(UNDO, begins=1060.0))

    assert (await found.look()).again == 1060.0
    assert found.signals.sent == []
    found.world.clock = 1060.0
    await found.look()
    assert len(found.signals.sent) == 1


async def test_a_person_s_own_answer_is_not_given_twice_where_a_freeze_undoes_too() -> None:
    claim = marked()
    found = Answered(replace(claim, annotations={**claim.annotations, **ASKED}), freeze=UNDO)

    await found.look()

    assert found.signals.sent == [("c/disrupt/1", "cancel", "not now", "kubectl-annotate")]


DENIED = {f"{names.PRE_DRAIN_HOOK}mesh": "deny: a backup runs"}


async def test_a_hook_that_denies_calls_the_disruption_off_before_its_delete_and_once() -> None:
    """TRM-47."""
    claim = marked()
    found = Answered(replace(claim, annotations={**claim.annotations, **DENIED}))

    await found.look()
    await found.look()

    assert found.signals.sent == [("c/disrupt/1", "cancel", "hook mesh denies it: a backup runs", "hook mesh")]


async def test_a_hook_calls_off_nothing_that_is_deleted_or_that_nothing_has_marked() -> None:
    """TRM-47."""
    leaving = marked(deleting_since=990.0, finalizers=(names.TERMINATION_FINALIZER,))
    for claim in (replace(leaving, annotations={**leaving.annotations, **DENIED}), a_joined_claim(annotations=DENIED)):
        found = Answered(claim, freeze=UNDO)
        await found.look()
        assert found.signals.sent == []


def test_a_denied_claim_is_no_candidate_and_no_plan_is_carried_out_on_it() -> None:
    """TRM-47."""
    claim = a_joined_claim(annotations=DENIED)

    assert called_off(claim, 1000.0) == CalledOff(why="hook mesh denies it: a backup runs", by="hook mesh")
    pair = a_pair("n", claim={"annotations": DENIED})
    found = explain_node(a_world([pair]), DisruptionSettings(), "n")
    assert [check.why for check in found.checks if not check.passes] == [WhyNot.HOOK_DENIES]
