"""Ids of traces follow from the record, and so does which traces are kept."""

import pytest

from dovetail.activities.identity.trace_header import HEADER, header_of, parent_in
from dovetail.messages.plans import Seen
from dovetail.telemetry.traces.ids import SpanId, is_kept, of_decision, of_plan, of_run

PLAN = "0192d3a4-7c5e-7b21-8f00-0123456789ab"


def test_the_trace_of_a_plan_is_its_id() -> None:
    assert of_plan(PLAN, 1.0).trace == PLAN.replace("-", "")


def test_an_id_of_another_form_has_its_trace_all_the_same() -> None:
    assert len(of_plan("static/web", 1.0).trace) == 32
    assert of_plan("static/web", 1.0) == of_plan("static/web", 1.0) != of_plan("static/db", 1.0)


def test_spans_of_one_trace_differ_by_what_they_are_of() -> None:
    first = of_plan(PLAN, 1.0)
    assert first.within("run", "1") == first.within("run", "1") != first.within("run", "2")
    assert {first.within("run", "1").trace, first.within("run", "2").trace} == {first.trace}


def test_a_decision_is_recognised_by_what_it_had_seen() -> None:
    seen = Seen(taken_at=1.5, versions=(("Node", 7),))
    later = Seen(taken_at=1.5, versions=(("Node", 8),))
    assert of_decision("c/scheduler", seen, 1.0) == of_decision("c/scheduler", seen.ready(2.0), 1.0)
    assert of_decision("c/scheduler", seen, 1.0) != of_decision("c/scheduler", later, 1.0)
    assert of_decision("c/scheduler", seen, 1.0) != of_decision("d/scheduler", seen, 1.0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_of_many_traces_the_share_is_kept(share: float) -> None:
    kept = sum(of_run("c/claim/web", str(number), share).kept for number in range(2000))
    assert abs(kept / 2000 - share) < 0.05


def test_two_workers_keep_the_same_traces() -> None:
    trace = of_plan(PLAN, 1.0).trace
    assert is_kept(trace, 1.0) and not is_kept(trace, 0.0)
    assert of_plan(PLAN, 0.3) == of_plan(PLAN, 0.3)


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_handed_on_is_read_again(kept: bool) -> None:
    span = SpanId(trace="ab" * 16, span="cd" * 8, kept=kept)
    assert parent_in({HEADER: header_of(span)}) == span


@pytest.mark.parametrize("text", ["", "00", "00-12-34-01", '"'])
def test_a_header_that_cannot_be_read_is_none(text: str) -> None:
    payload = header_of(SpanId(trace="ab" * 16, span="cd" * 8))
    payload.data = text.encode()
    assert parent_in({HEADER: payload}) is None and parent_in({}) is None
