"""The admission policies that keep workers to what their rights are for, as this world understands them.

It has no language for policies, so it knows these by their names: a client with the user agent dovetail changes only
the annotations of a move on a Deployment if `dovetail-moves` and its binding exist (deploy/kubernetes/moves.yaml), and
only its nomination and deletion cost on a pod, always (places.yaml, deletion-costs.yaml).
"""

import sqlite3
from typing import Final

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.model import names
from dovetail.model.places.move_changes import GUARD, GUARD_KINDS
from dovetail.model.values.json import Json

WORKERS: Final = "dovetail"
_OURS: Final = frozenset({names.MOVES, names.POD_DELETION_COST})


def check_policies(connection: sqlite3.Connection, actor: str, old: Json, new: Json) -> None:
    """Refuse a worker every other change of a Deployment or a pod."""
    if not actor.startswith(WORKERS) or _rest_of(old) == _rest_of(new):
        return
    if old["kind"] == "Deployment" and all(objects.read(connection, kind, GUARD) for kind in GUARD_KINDS):
        raise _denied(GUARD)
    if old["kind"] == "Pod":
        raise _denied("dovetail-deletion-costs" if old.get("status") == new.get("status") else "dovetail-places")


def _denied(policy: str) -> Rejected:
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: no other change"
    return Rejected(422, "Invalid", message, {"message": message})


def _rest_of(body: Json) -> Json:
    """Everything that the policies protect."""
    spec, status = dict(body.get("spec") or {}), dict(body.get("status") or {})
    if "template" in spec:
        spec["template"] = _without(spec["template"], frozenset({names.MOVED}))
    if body["kind"] == "Pod":
        status.pop("nominatedNodeName", None)
    metadata = {
        name: value for name, value in body["metadata"].items() if name not in ("resourceVersion", "generation")
    }
    return {**_without({"metadata": metadata}, _OURS), "spec": spec, "status": status}


def _without(body: Json, annotations: frozenset[str]) -> Json:
    metadata = body.get("metadata") or {}
    kept = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in annotations}
    return {**body, "metadata": {**metadata, "annotations": kept}}
