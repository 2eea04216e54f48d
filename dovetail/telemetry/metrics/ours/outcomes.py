"""Outcomes of launches, disruptions and warnings, under names of our own: Karpenter has no such metrics."""

from typing import Final

from opentelemetry import metrics

from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.outcomes"),
    counters={
        "launches_total": "Launches that ended, by outcome and NodePool.",
        "interruptions_not_borne_out_total": "Warnings about a node that the cloud did not bear out, by reason.",
        "predicted_savings_dollars_per_hour_total": "Dollars an hour that disruptions that were begun are to save.",
        "realised_savings_dollars_per_hour_total": "Dollars an hour that disruptions save that have come to their end.",
    },
    histograms={},
    gauges={
        "plans_held": "Disruptions that wait for their second look.",
        "instances_without_claim": "Instances of the cloud's last list that belong to no NodeClaim.",
    },
    prefix=OWN_PREFIX,
)


def launched(outcome: str, pool: str) -> None:
    """A launch has ended: launched, no_capacity, class_not_ready, refused or overdue."""
    INSTRUMENTS.count("launches_total", {"outcome": outcome, "nodepool": pool})


def not_borne_out(reason: str) -> None:
    """A warning was dropped: the cloud itself does not confirm it."""
    INSTRUMENTS.count("interruptions_not_borne_out_total", {"reason": reason})


def saving(reason: str, dollars: float) -> None:
    """A disruption was begun that should save so much; one that costs more counts as zero."""
    name = "predicted_savings_dollars_per_hour_total"
    INSTRUMENTS.counter(name).add(max(0.0, dollars), {"reason": reason})


def realised(reason: str, dollars: float, share: float) -> None:
    """A disruption that should save so much has ended, with that share of its nodes; the others stayed."""
    name = "realised_savings_dollars_per_hour_total"
    INSTRUMENTS.counter(name).add(max(0.0, dollars) * share, {"reason": reason})


def plans_held(number: int) -> None:
    INSTRUMENTS.gauge("plans_held").set(number)


def instances_without_claim(number: int) -> None:
    """Set how many there were in the cloud's last list."""
    INSTRUMENTS.gauge("instances_without_claim").set(number)
