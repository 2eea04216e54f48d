"""A move as it is written: annotations of a Deployment and of its template, nothing else."""

from dovetail.model.places.move_changes import MoveChange
from dovetail.model.values.json import Json


def render_move(change: MoveChange) -> Json:
    """A merge patch; null removes an annotation."""
    body: Json = {"metadata": {"annotations": dict(change.annotations)}}
    if change.template is not None:
        body["spec"] = {"template": {"metadata": {"annotations": dict(change.template)}}}
    return body
