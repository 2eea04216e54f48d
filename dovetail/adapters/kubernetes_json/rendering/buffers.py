"""The status of a CapacityBuffer as it is written."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.objects.buffers import BufferStatus
from dovetail.model.values.json import Json


def render_status(status: BufferStatus) -> Json:
    """The whole status; null removes a field."""
    return {
        "podTemplateRef": None if status.template is None else {"name": status.template},
        "podTemplateGeneration": status.template_generation,
        "replicas": status.replicas,
        "provisioningStrategy": status.strategy,
        "conditions": fields.conditions(status.conditions),
    }
