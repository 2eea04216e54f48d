"""The objects at a phase's end, in a form in which equal objects are equal.

Both sides are read so. Quantities are numbers, requirements and taints sets, conditions go by type. Messages are
compared by meaning, of which a program sees the error codes that they name. NodePools are core's and there for
orientation: they have recordings of their own.
"""

import itertools
import re
from collections.abc import Callable
from typing import Final

from acceptance.traffic.comparing.events import EVENTS, TRANSITIONS, codes_in
from acceptance.traffic.comparing.values import ABSENT, Bag
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_quantity

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
        told = {kind: phase.get(kind) or [] for kind in (EVENTS, TRANSITIONS)}
        found[phase["phase"]] = {**before, **told}
        if "pods" in phase:
            found[phase["phase"]]["pods"] = phase["pods"]
    return found


def comparable(objects: Json, known: frozenset[str] = frozenset()) -> Json:
    """One phase's objects, kind by kind; kinds of which nothing is known are left out. `known`: codes to look for."""
    return {kind: Bag([_read(kind, each, known) for each in objects[kind]]) for kind in STATES if kind in objects}


def _read(kind: str, body: Json, known: frozenset[str]) -> Json:
    read = _READ[kind](body)
    if kind in ("nodeClasses", "nodeClaims"):
        read["conditions"] = _conditions(kind, body, known)
    return read


def _conditions(kind: str, body: Json, known: frozenset[str]) -> Json:
    """By type, status and reason as one text; a claim's generation is the moment of its deletion, and says nothing."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return {each["type"]: _condition(kind, each, known) for each in conditions if each["type"] not in _OURS}


_OURS: Final = frozenset({"NodesUpToDate"})  # conditions that upstream has only proposed


def _condition(kind: str, body: Json, known: frozenset[str]) -> Json:
    codes = dict.fromkeys(sorted(codes_in(body.get("message"), known)), True)
    read = {"is": f"{body.get('status')} {body.get('reason') or ''}".strip(), "codes": codes}
    return read if kind == "nodeClaims" else {**read, "observedGeneration": body.get("observedGeneration")}


def is_more(path: str, theirs: object) -> bool:
    """Whether a condition of ours only names a code that theirs leaves out: ours may say more."""
    return theirs is ABSENT and re.fullmatch(r".*\.conditions\.\w+\.codes\..*", path) is not None


def _identity(metadata: Json) -> Json:
    kept = {key: metadata[key] for key in ("annotations", "labels", "generation", "name") if metadata.get(key)}
    if "annotations" in kept:
        kept["annotations"] = {k: v for k, v in kept["annotations"].items() if k not in _OF_THE_CASE}
    kept["finalizers"] = sorted(metadata.get("finalizers") or [])
    kept["deleting"] = bool(metadata.get("deletionTimestamp"))
    return kept


def _node_class(body: Json) -> Json:
    status = dict(body.get("status") or {})
    status.pop("conditions", None)
    if "amis" in status:
        status["amis"] = [{**ami, "requirements": _requirements(ami.get("requirements"))} for ami in status["amis"]]
    return {
        **_identity(body["metadata"]),
        "spec": body.get("spec") or {},
        "status": {key: value for key, value in status.items() if value not in (None, [])},
    }


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
