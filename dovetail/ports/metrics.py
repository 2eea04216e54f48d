"""What is asked of the metrics of the cluster and its applications."""

from typing import Protocol

from dovetail.model.own.gates import Series


class Metrics(Protocol):
    """The one Prometheus of the settings, or what speaks its API."""

    async def ask(self, expression: str) -> tuple[Series, ...]:
        """What the expression gives now. A Failure where that is not known, whole and without doubt."""
