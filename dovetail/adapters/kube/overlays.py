"""The port NodeOverlays on the API server.

Nothing else of an overlay is ours.
"""

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.objects import Collection
from dovetail.adapters.kubernetes_json import rendering
from dovetail.adapters.kubernetes_json.kinds import NODE_OVERLAY
from dovetail.adapters.kubernetes_json.parsing.overlays import parse_node_overlay
from dovetail.model.nodes import Condition
from dovetail.model.overlays import NodeOverlay


class KubeNodeOverlays:
    """NodeOverlays on the API server."""

    def __init__(self, client: Client) -> None:
        self._overlays = Collection[NodeOverlay](client, NODE_OVERLAY.name, NODE_OVERLAY.path, parse_node_overlay)

    async def patch_conditions(self, overlay: NodeOverlay, conditions: tuple[Condition, ...]) -> NodeOverlay | None:
        return await self._overlays.patch(
            overlay, {"status": {"conditions": rendering.conditions(conditions)}}, "status"
        )
