"""The objects at a phase's end, in a form in which equal objects are equal.

Both sides are read so. Quantities are numbers, requirements and taints sets, conditions go by type; messages are
compared by meaning only, which no program does, so they are left out. NodePools and the conditions of NodeClaims are
core's and there for orientation: they have recordings of their own.
"""

import itertools
import re
from collections.abc import Callable
from typing import Final

from acceptance.traffic.comparing.values import Bag
from dovetail.model.json import Json
from dovetail.model.resources import parse_quantity

STATES: Final = ("nodeClasses", "nodeClaims", "nodes", "pods", "instances")
_MILLI: Final = 1000
_OF_THE_CASE: Final = frozenset({"example.com/touch", "dovetail-dead"})  # written by its steps, on what there then was


def unsure(phases: list[Json], differs: list[str]) -> set[str]:
    """`kind:phase` for what differed between the recordings, and for the phases in which it then did not change."""
    found = set(differs)
    for before, phase in itertools.pairwise(phases):
        found |= {
            f"{kind}:{phase['phase']}" for kind in STATES if kind not in phase and f"{kind}:{before['phase']}" in found
        }
    return found


def unfolded(phases: list[Json]) -> dict[str, Json]:
    """Every kind at every phase: one that is left out has not changed since the phase before.

    But pods: of them the recorder left out an empty list too, so where it says nothing nothing is known.
    """
    found: dict[str, Json] = {}
    before: Json = {}
    for phase in phases:
        before = {kind: phase.get(kind, before.get(kind, [])) for kind in STATES if kind != "pods"}
        found[phase["phase"]] = {**before, "events": phase.get("events") or []}
        if "pods" in phase:
            found[phase["phase"]]["pods"] = phase["pods"]
    return found


def comparable(objects: Json) -> Json:
    """One phase's objects, kind by kind; kinds of which nothing is known are left out."""
    return {
        **{kind: Bag([_READ[kind](each) for each in objects[kind]]) for kind in STATES if kind in objects},
        "events": Bag(_distinct([_event(each) for each in objects.get("events") or [] if not _is_transition(each)])),
    }


def _distinct(found: list[str]) -> list[str]:
    """How often one Event was published says nothing: both sides leave out repetitions, for times of their own."""
    return list(dict.fromkeys(found))


def _is_transition(body: Json) -> bool:
    """A condition's change, announced: the recording keeps these apart, and what they led to is in the conditions."""
    return str(body.get("message") or "").startswith("Status condition transitioned")


def _event(body: Json) -> str:
    """One text: two Events of different reasons have nothing in common."""
    kind, name, type_, reason = (body.get(key) or "" for key in ("kind", "name", "type", "reason"))
    return f"{type_} {reason} {kind}/{name}"


def _identity(metadata: Json) -> Json:
    kept = {key: metadata[key] for key in ("annotations", "labels", "generation", "name") if metadata.get(key)}
    if "annotations" in kept:
        kept["annotations"] = {k: v for k, v in kept["annotations"].items() if k not in _OF_THE_CASE}
    kept["finalizers"] = sorted(metadata.get("finalizers") or [])
    kept["deleting"] = bool(metadata.get("deletionTimestamp"))
    return kept


def _node_class(body: Json) -> Json:
    status = dict(body.get("status") or {})
    conditions = {each["type"]: _condition(each) for each in status.pop("conditions", None) or []}
    if "amis" in status:
        status["amis"] = [{**ami, "requirements": _requirements(ami.get("requirements"))} for ami in status["amis"]]
    return {
        **_identity(body["metadata"]),
        "spec": body.get("spec") or {},
        "status": {key: value for key, value in status.items() if value not in (None, [])},
        "conditions": conditions,
    }


def _condition(body: Json) -> Json:
    return {key: body.get(key) for key in ("status", "reason", "observedGeneration")}


def _requirements(found: list[Json] | None) -> Json:
    """By key and operator; one key may have several."""
    kept: Json = {}
    for each in found or []:
        name = f"{each['key']} {each['operator']}"
        kept[name] = {"values": sorted(each.get("values") or []), "minValues": each.get("minValues")}
    return kept


def _quantities(found: Json | None) -> Json:
    return {name: parse_quantity(str(value), _MILLI) / _MILLI for name, value in (found or {}).items()}


def _taints(found: list[Json] | None) -> Json:
    return {f"{each['key']}:{each.get('effect')}": each.get("value") or "" for each in found or []}


def _node_claim(body: Json) -> Json:
    spec, status = dict(body.get("spec") or {}), body.get("status") or {}
    spec["requirements"] = _requirements(spec.get("requirements"))
    spec["resources"] = _quantities((spec.get("resources") or {}).get("requests"))
    for key in ("taints", "startupTaints"):
        spec[key] = _taints(spec.get(key))
    return {
        **_identity(body["metadata"]),
        "spec": spec,
        "capacity": _quantities(status.get("capacity")),
        "allocatable": _quantities(status.get("allocatable")),
        **{key: status.get(key) for key in ("imageID", "nodeName", "providerID")},
    }


def _node(body: Json) -> Json:
    spec = body.get("spec") or {}
    return {
        **_identity(body["metadata"]),
        "providerID": spec.get("providerID"),
        "taints": _taints(spec.get("taints")),
        "ready": (body.get("status") or {}).get("ready"),
    }


def _pod(body: Json) -> Json:
    """Which of several equal pods went to which node is the cluster's scheduler's choice."""
    return {**body, "name": re.sub(r"-\d+$", "-N", str(body.get("name")))}


def _as_it_is(body: Json) -> Json:
    return dict(body)


_READ: Final[dict[str, Callable[[Json], Json]]] = {
    "nodeClasses": _node_class,
    "nodeClaims": _node_claim,
    "nodes": _node,
    "pods": _pod,
    "instances": _as_it_is,
}
