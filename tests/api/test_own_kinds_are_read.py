"""Every field of an own kind is read, and everything that is written is a field.

Such a field stands twice: in the API's model, with its bounds and words, and in the product's, with its place. Reader
and writer follow from these.
"""

from collections.abc import Iterator
from dataclasses import is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from dovetail.api.own.disruption_policy import DisruptionPolicySpec, DisruptionPolicyStatus
from dovetail.api.own.freeze import FreezeSpec
from dovetail.api.own.node_rollout import NodeRolloutSpec, NodeRolloutStatus
from dovetail.model.nodes import Condition
from dovetail.model.own.forms import Form, marks_of, places_of
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus
from dovetail.model.own.rollouts import Rollout, RolloutStatus
from dovetail.model.pods import LabelSelector
from tests.api.test_every_field_is_read import fields_of

# One value alone is possible, or it follows from others; selectors and conditions are read as everywhere.
OF_NO_USE = {"drain.escalation[].default", "steps[].approve.onExpiry", "rollout.steps[].approve.onExpiry"}
OF_NO_USE |= {"observedGeneration", "nodes.old"}
NOT_THERE = {"alerts.name", "alerts.failed"}
AS_EVERYWHERE = {LabelSelector, Condition}


def declared_in(kind: Any, before: str = "") -> Iterator[str]:
    """The path of every field of a dataclass that has no fields of its own."""
    for place in places_of(kind):
        yield from _below(place.hint, before + ".".join(place.path))


def _below(hint: Any, path: str) -> Iterator[str]:
    inner = get_args(hint)
    if any(isinstance(mark, Form) for mark in marks_of(hint)):
        yield path
    elif marks_of(hint) or NoneType in inner:
        yield from _below(inner[0], path)
    elif get_origin(hint) is tuple and is_dataclass(inner[0]):
        yield from _below(inner[0], f"{path}[]")
    elif is_dataclass(hint) and hint not in AS_EVERYWHERE:
        yield from declared_in(hint, f"{path.rstrip('.')}.")
    else:
        yield path


def as_everywhere(paths: Iterator[str]) -> set[str]:
    """Without what selectors and conditions have of their own."""
    found = set()
    for path in paths:
        first, _, _ = path.partition(".")
        found.add(first if first in ("nodePoolSelector", "conditions[]") else path)
    return found


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (FreezeSpec, Freeze),
        (DisruptionPolicySpec, Policy),
        (DisruptionPolicyStatus, PolicyStatus),
        (NodeRolloutSpec, Rollout),
        (NodeRolloutStatus, RolloutStatus),
    ],
)
def test_a_field_of_an_own_kind_is_declared_in_the_model_too(model: type[BaseModel], kind: Any) -> None:
    there, read = as_everywhere(fields_of(model)), as_everywhere(declared_in(kind))

    assert there - read - OF_NO_USE == set(), "declare it in dovetail/model/own"
    if kind in (PolicyStatus, RolloutStatus):
        assert read - there - NOT_THERE == set(), "the API server would drop what is written there"
