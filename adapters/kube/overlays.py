"""The port NodeOverlays on the API server.

Asked by upkeep, which writes what became of each overlay; nothing else of an overlay is ours.
"""

from adapters.kube import rendering
from adapters.kube.client import Client
from adapters.kube.kinds import NODE_OVERLAY
from adapters.kube.objects import Collection
from adapters.kube.parsing.overlays import parse_node_overlay
from core.model.nodes import Condition
from core.model.overlays import NodeOverlay


class KubeNodeOverlays:
    """NodeOverlays on the API server."""

    def __init__(self, client: Client) -> None:
        self._overlays = Collection[NodeOverlay](client, NODE_OVERLAY.name, NODE_OVERLAY.path, parse_node_overlay)

    async def patch_conditions(self, overlay: NodeOverlay, conditions: tuple[Condition, ...]) -> NodeOverlay | None:
        return await self._overlays.patch(
            overlay, {"status": {"conditions": rendering.conditions(conditions)}}, "status"
        )
