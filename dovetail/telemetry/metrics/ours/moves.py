"""Metrics of pods that are moved by a roll-out of their Deployment. The names are ours alone."""

from typing import Final, Literal

from opentelemetry import metrics

from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

Outcome = Literal["moved", "failed", "called off", "impossible"]

COUNTERS: Final = {
    "moves_total": "Pods to be moved by a roll-out of their Deployment, by outcome and, where impossible, why."
}
HISTOGRAMS: Final = {
    "move_seconds": (
        "Seconds from the change of a Deployment until its pod had left the node.",
        (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0),
    )
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.moves"), counters=COUNTERS, histograms=HISTOGRAMS, prefix=OWN_PREFIX
)


def move_ended(outcome: Outcome, why: str = "") -> None:
    """How a move ended, or that none was possible."""
    INSTRUMENTS.count("moves_total", {"outcome": outcome, "why": why})


def move_took(seconds: float) -> None:
    """How long a successful move took."""
    INSTRUMENTS.observe("move_seconds", seconds, {})
