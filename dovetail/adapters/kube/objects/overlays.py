"""NodeOverlays: their conditions, the only part of an overlay that is ours, are written."""

from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller
from dovetail.adapters.kubernetes_json.kinds import NODE_OVERLAY
from dovetail.adapters.kubernetes_json.parsing.overlays import parse_node_overlay
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.nodes import Condition
from dovetail.model.objects.overlays import NodeOverlay


class KubeNodeOverlays:
    def __init__(self, client: Caller) -> None:
        self._overlays = Collection[NodeOverlay](client, NODE_OVERLAY.name, NODE_OVERLAY.path, parse_node_overlay)

    async def patch_conditions(self, overlay: NodeOverlay, conditions: tuple[Condition, ...]) -> NodeOverlay | None:
        status = {"conditions": fields.conditions(conditions)}
        return await self._overlays.patch(overlay, {"status": status}, "status")
