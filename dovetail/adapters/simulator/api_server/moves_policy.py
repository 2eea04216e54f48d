"""The admission policy `dovetail-moves` as this world understands it.

It has no language for policies, so it knows this one by its name: if the policy and its binding exist, a client with
the user agent dovetail changes only the annotations of a move on a Deployment (deploy/kubernetes/moves.yaml).
"""

import sqlite3
from typing import Final

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.model import names
from dovetail.model.places.move_changes import GUARD, GUARD_KINDS
from dovetail.model.values.json import Json

WORKERS: Final = "dovetail"
_OURS: Final = frozenset({names.MOVES})


def check_move(connection: sqlite3.Connection, actor: str, old: Json, new: Json) -> None:
    """Refuse a worker every other change of a Deployment."""
    if old["kind"] != "Deployment" or not actor.startswith(WORKERS):
        return
    if all(objects.read(connection, kind, GUARD) for kind in GUARD_KINDS) and _rest_of(old) != _rest_of(new):
        message = (
            f"ValidatingAdmissionPolicy '{GUARD}' lets a worker change nothing of it but the annotations of a move"
        )
        raise Rejected(422, "Invalid", message)


def _rest_of(body: Json) -> Json:
    """Everything that the policy protects."""
    template = body["spec"]["template"]
    spec = {**body["spec"], "template": _without(template, frozenset({names.MOVED}))}
    metadata = {
        name: value for name, value in body["metadata"].items() if name not in ("resourceVersion", "generation")
    }
    return {**_without({"metadata": metadata}, _OURS), "spec": spec}


def _without(body: Json, annotations: frozenset[str]) -> Json:
    metadata = body.get("metadata") or {}
    kept = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in annotations}
    return {**body, "metadata": {**metadata, "annotations": kept}}
