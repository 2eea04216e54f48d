"""await_disruption_plan: what counts as taken when a held plan is looked at again."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from activities import disrupting
from activities.disrupting import Disrupting
from core.disruption.revalidate import Valid
from core.disruption.settings import DisruptionSettings
from core.model.inputs import DisruptionRequest, Go, Held
from core.model.plans import DisruptionCommand, DisruptionPlan, Seen, Target
from core.model.snapshot import Snapshot


def a_held_plan(claim: str) -> Held:
    target = Target(claim=claim, claim_uid=claim, node=claim, node_uid=claim, provider_id=claim, pool="pool", pods=())
    command = DisruptionCommand(
        reason="Empty", method="emptiness", targets=(target,), replacements=(), destinations=(), summary="", savings=0.0
    )
    plan = DisruptionPlan(seen=Seen(taken_at=0.0, versions=()), commands=(command,), type_lists=(), validate_after=15.0)
    return Held(plan=plan, due=0.0)


@pytest.mark.parametrize(("index", "taken"), [(0, set()), (1, {"first"}), (2, {"first", "second"})])
async def test_only_what_was_held_before_a_plan_counts_as_taken(
    monkeypatch: pytest.MonkeyPatch, index: int, taken: set[str]
) -> None:
    """D-134: an empty node, and its neighbour whose pod would land there, dropped each other's plans for ever."""
    given: list[Snapshot] = []

    def revalidate(plan: DisruptionPlan, snapshot: Snapshot, *_: object) -> Valid:
        given.append(snapshot)
        return Valid(plan=plan)

    monkeypatch.setattr(disrupting, "revalidate", revalidate)
    nothing = cast(Any, None)
    clock: Callable[[], float] = lambda: 1.0  # noqa: E731
    step = Disrupting(nothing, nothing, nothing, DisruptionSettings(), clock)
    request = DisruptionRequest(
        must_see=(), nominations=(), quiet_until=0.0, held=tuple(a_held_plan(n) for n in ("first", "second", "third"))
    )

    answer = await step._check(Snapshot(now=1.0), request, index)

    assert given[0].disrupting == taken
    assert isinstance(answer, Go)
    assert answer.held == index
