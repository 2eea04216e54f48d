"""Phases of NodeClaims, read from the objects."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.ours import phases
from dovetail.telemetry.metrics.ours.phases import PhaseTimes, phase_of, phase_samples
from tests.lifecycle.objects import a_new_pool
from tests.metrics.test_lifecycle import Meter
from worlds.disruption import a_claim
from worlds.fakes import on_duty


def claim_with(*conditions: str, deleting: float | None = None) -> NodeClaim:
    """Each condition became True a hundred seconds after the one before."""
    made = tuple(
        Condition(type=kind, status="True", changed=1000.0 + 100 * (at + 1)) for at, kind in enumerate(conditions)
    )
    return replace(a_claim(), created=1000.0, conditions=made, deleting_since=deleting)


LIFE = (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION)


@pytest.mark.parametrize(
    ("claim", "phase", "since"),
    [
        (claim_with(), "launching", 1000.0),
        (claim_with(*LIFE[:1]), "registering", 1100.0),
        (claim_with(*LIFE[:2]), "initializing", 1200.0),
        (claim_with(*LIFE), "running", 1300.0),
        (claim_with(*LIFE, names.DISRUPTION_REASON), "marked", 1400.0),
        (claim_with(*LIFE, deleting=1500.0), "draining", 1500.0),
        (claim_with(*LIFE, names.DRAINED, deleting=1350.0), "detaching", 1400.0),
        (claim_with(*LIFE, names.DRAINED, names.INSTANCE_TERMINATING, deleting=1350.0), "terminating", 1500.0),
    ],
)
def test_a_phase_is_what_the_conditions_say(claim: NodeClaim, phase: str, since: float) -> None:
    assert phase_of(claim) == (phase, since)


def test_each_phase_is_counted_with_its_oldest() -> None:
    claims = {"a": claim_with(), "b": replace(claim_with(), created=900.0), "c": claim_with(*LIFE)}
    samples = [*phase_samples(Snapshot(now=1300.0, claims=claims, pools={"pool": a_new_pool()}))]
    found = {(s.name, dict(s.labels)["phase"]): s.value for s in samples if dict(s.labels)["nodepool"] == "pool"}
    assert found["nodeclaims", "launching"] == 2
    assert found["nodeclaims_oldest_in_phase_seconds", "launching"] == 400.0
    assert found["nodeclaims", "running"] == 1
    assert found["nodeclaims", "draining"] == found["nodeclaims_oldest_in_phase_seconds", "draining"] == 0


def test_a_phase_is_timed_at_its_end_by_the_worker_that_speaks_for_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter()
    monkeypatch.setattr(phases, "INSTRUMENTS", phases.INSTRUMENTS.on(meter.provider.get_meter("test")))
    launching, registering, gone = claim_with(), claim_with(*LIFE[:1]), claim_with(*LIFE, deleting=1500.0)
    for duties in (on_duty(), on_duty(lambda loop: False)):
        times = PhaseTimes(duties, lambda: 1530.0)
        times.heard(None, launching)
        times.heard(launching, registering)
        times.heard(claim_with(*LIFE), gone)  # a node's life is no phase to wait for
        times.heard(gone, replace(gone, resource_version="9"))
        times.heard(gone, None)
    name = "dovetail_nodeclaim_phase_duration_seconds"
    assert meter.kept == [
        (name, 530.0, {"phase": "launching", "nodepool": "pool"}),
        (name, 30.0, {"phase": "draining", "nodepool": "pool"}),
    ]
