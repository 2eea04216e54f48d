"""What can be asked of the Prometheus of the worker's settings, in roll-outs and policies? Never where it is."""

from typing import Annotated

from pydantic import Field

from dovetail.api.schema.rules import Rule
from dovetail.api.schema.structural import ApiModel

_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]* *(=|!=|=~|!~) *"([^"\\]|\\.)*"'
SELECTOR = rf"^\{{ *({_LABEL}( *, *{_LABEL})*)? *,? *\}}$"
BOUND = r"^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"

Selector = Annotated[str, Field(min_length=2, max_length=256, pattern=SELECTOR)]
Bound = Annotated[str, Field(max_length=32, pattern=BOUND)]

_FIRING_ALONE = Rule(
    message="alertstate cannot be chosen: alerts that fire are meant",
    cel="!self.firing.contains('alertstate') && (!has(self.ignore) || !self.ignore.contains('alertstate'))",
    holds=lambda alerts: "alertstate" not in f"{alerts.firing}{alerts.ignore or ''}",
)


class FiringAlerts(ApiModel):
    """Alerts of which none may fire."""

    rules = (_FIRING_ALONE,)

    firing: Selector
    """Labels of the alerts that are meant, as Prometheus selects series: {severity="critical",team="platform"}."""
    ignore: Selector | None = None
    """Labels of those of them that do not count."""
