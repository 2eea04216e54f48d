"""Questions to Prometheus in roll-outs and policies. Its address is a setting of the worker, never an object's."""

from typing import Annotated

from pydantic import Field

from dovetail.api.schema.structural import ApiModel

_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]* *(=|!=|=~|!~) *"([^"\\]|\\.)*"'
SELECTOR = rf"^\{{ *({_LABEL}( *, *{_LABEL})*)? *,? *\}}$"
BOUND = r"^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"

Selector = Annotated[str, Field(min_length=2, max_length=256, pattern=SELECTOR)]
Bound = Annotated[str, Field(max_length=32, pattern=BOUND)]


class FiringAlerts(ApiModel):
    """Alerts of which none may fire."""

    firing: Selector
    """Labels of the alerts that are meant, as Prometheus selects series: {severity="critical",team="platform"}."""
    ignore: Selector | None = None
    """Labels of those of them that do not count."""
