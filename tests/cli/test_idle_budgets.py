"""`dovetail status` and `dovetail doctor` say which budgets of a NodePool limit nothing here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.answers.doctor.cluster import _pools
from dovetail.answers.doctor.findings import Check
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.validation import parse
from dovetail.model.snapshot import Snapshot
from dovetail.wiring.world import World
from tests.api.manifests import a_pool
from tests.cli.worlds import a_ready_pool, a_world, answered_here, settings_of

DAY = "2026-11-29T00:00:00Z"


class Catalogues:
    """A cloud in which every pool is well."""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({("karpenter.k8s.aws", "EC2NodeClass")})

    async def node_class(self, _reference: object) -> Any:
        return SimpleNamespace(found=True, ready="True", message="")

    async def catalogue(self, _pool: object) -> Any:
        return SimpleNamespace(error="", types=("m5.large",))


async def checked(*reasons: str) -> Check:
    """The check of a NodePool with a budget for all reasons and one for these, as the API server would take it."""
    manifest = a_pool()
    manifest["spec"]["disruption"] = {"budgets": [{"nodes": "10%"}, {"nodes": "0", "reasons": list(reasons)}]}
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": DAY}
    manifest["status"] = {"conditions": [ready]}
    parse(NodePool, manifest)
    pool = parse_node_pool(manifest)
    (found,) = await _pools(cast(World, SimpleNamespace(catalogues=Catalogues())), Snapshot(now=0.0, pools={"a": pool}))
    return found


async def test_a_budget_for_repair_is_taken_and_said_to_limit_nothing() -> None:
    """DIS-52: whoever comes from Karpenter 1.15 believes that repair keeps to it."""
    found = await checked("Unhealthy", "Drifted")

    assert (found.verdict, found.found) == (
        "warns",
        "spec.disruption.budgets names the reason Unhealthy, which limits nothing here",
    )
    assert "whatever budgets say" in found.advice


async def test_status_says_so_of_the_pools_that_have_one(tmp_path: Path) -> None:
    pools = [a_ready_pool(name) for name in ("idle", "well")]
    for pool, reason in zip(pools, ("Unhealthy", "Drifted"), strict=True):
        pool["spec"]["disruption"] = {"budgets": [{"nodes": "0", "reasons": [reason]}]}
    world = a_world(tmp_path, *pools)

    notes = (await answered_here(settings_of(world), "status")).notes

    (said,) = [note for note in notes if "limits nothing" in note]
    assert said.startswith("NodePool idle: spec.disruption.budgets names the reason Unhealthy, which limits nothing")


async def test_budgets_for_what_asks_them_are_well() -> None:
    assert (await checked("Empty", "Drifted", "Underutilized")).verdict == "holds"
