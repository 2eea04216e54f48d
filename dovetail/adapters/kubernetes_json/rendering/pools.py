"""The status of a NodePool as it is written."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.pools import NodePool
from dovetail.model.values.json import Json
from dovetail.ports.objects import PoolStatus


def render_status(pool: NodePool, status: PoolStatus) -> Json:
    """The status fields that are set."""
    rendered: Json = {
        "resources": None if status.usage is None else fields.amounts(status.usage, pool.usage),
        "nodes": status.node_count,
        "nodeClassObservedGeneration": status.class_generation,
        "conditions": None if status.conditions is None else fields.conditions(status.conditions),
    }
    return {name: value for name, value in rendered.items() if value is not None}
