"""PLC-28: what pods merely prefer is said in the log, because it can prevent consolidation."""

import logging

import pytest

from dovetail.activities.provisioning.choosy_pods import ChoosyPods
from dovetail.model import names
from dovetail.model.pods import Pod, PodShape, PodTerm, SpreadConstraint
from dovetail.telemetry.log.line import EXTRA
from tests.placement.builders import a_waiting_pod

APART = PodTerm(topology_key=names.HOSTNAME, selector=None, weight=1)


def a_spread(word: str) -> PodShape:
    constraint = SpreadConstraint(topology_key=names.ZONE, max_skew=1, when_unsatisfiable=word, selector=None)  # type: ignore[arg-type]
    return PodShape(namespace="default", labels={}, spread=(constraint,))


def test_each_pod_is_named_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dovetail.telemetry.log")
    apart = PodShape(namespace="default", labels={}, preferred_anti_affinity=(APART,))
    first = [
        a_waiting_pod("a", shape=apart),
        a_waiting_pod("soft", shape=a_spread("ScheduleAnyway")),
        a_waiting_pod("hard", shape=a_spread("DoNotSchedule")),
    ]
    choosy = ChoosyPods()

    def said(pods: list[Pod], now: float) -> list[tuple[str, str]]:
        caplog.clear()
        choosy.say(pods, now)
        done = [getattr(record, EXTRA) for record in caplog.records]
        return [(one.log_line.message.split()[4], one.fields["pods"]) for one in done]

    assert said(first, 1000.0) == [("Anti-Affinity", "default/a"), ("TopologySpreadConstraint", "default/soft")]
    later = said([*first, a_waiting_pod("b", shape=apart)], 4599.0)
    assert later == [("Anti-Affinity", "default/b")]
    assert len(said(first, 4601.0)) == 2
