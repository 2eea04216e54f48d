"""The spread constraints for pods that have none (PLC-56).

Read with the settings: the document SCHEDULER_CONFIG, YAML or JSON, in Karpenter's form. A bad document, even one with
just a misspelt field, stops the process before it has decided anything.
"""

from collections.abc import Iterable
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from dovetail.model.pods import SpreadConstraint


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class _Constraint(_Strict):
    """Without labelSelector and matchLabelKeys: the selector is deduced from the pod's owner (PLC-57)."""

    max_skew: int = Field(gt=0)
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = Field(None, gt=0)
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class _Spread(_Strict):
    default_constraints: list[_Constraint] = []


class _Config(_Strict):
    pod_topology_spread: _Spread = _Spread()


def default_spread(text: str) -> tuple[SpreadConstraint, ...]:
    """The constraints of the document; ValueError says what is wrong with it."""
    if not text.strip():
        return ()
    try:
        document: Any = yaml.safe_load(text)
        found = _Config.model_validate(document or {}).pod_topology_spread.default_constraints
    except yaml.YAMLError as error:
        raise ValueError(f"neither YAML nor JSON: {error}") from None
    except ValidationError as error:
        raise ValueError("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from None
    _check(found)
    return tuple(
        SpreadConstraint(
            topology_key=item.topology_key,
            max_skew=item.max_skew,
            when_unsatisfiable=item.when_unsatisfiable,
            selector=None,
            min_domains=item.min_domains,
            node_affinity_policy=item.node_affinity_policy,
            node_taints_policy=item.node_taints_policy,
        )
        for item in found
    )


def _check(constraints: Iterable[_Constraint]) -> None:
    from dovetail.api.runtime_checks import is_qualified_name  # loading its models takes a tenth of a command's start

    seen: set[tuple[str, str]] = set()
    for item in constraints:
        if not is_qualified_name(item.topology_key):
            raise ValueError(f"topologyKey {item.topology_key!r} is no qualified name")
        pair = (item.topology_key, item.when_unsatisfiable)
        if pair in seen:
            raise ValueError(f"two constraints for {item.topology_key} with {item.when_unsatisfiable}")
        seen.add(pair)
