"""What each NodePool costs an hour, at current prices (MET-1).

Prices come from the catalogue that decisions use, so nothing is fetched for this. A pool whose catalogue cannot be
listed counts as an error and is left out.
"""

from dovetail.disruption.nodes.costs import pool_cost
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.karpenters.catalogue import count


async def pool_costs(snapshot: Snapshot, catalogues: Catalogues) -> tuple[Sample, ...]:
    """nodepools_cost_total of every pool that is ours."""
    found = []
    supported = catalogues.supported_classes()
    for name, pool in sorted(snapshot.pools.items()):
        reference = pool.template.node_class
        if (reference.group, reference.kind) not in supported:
            continue
        try:
            catalogue = await catalogues.catalogue(pool)
        except Failure:
            count("nodepools_cost_tracker_errors_total", {"nodepool": name})
            continue
        cost = pool_cost(name, snapshot.claims.values(), {each.name: each for each in catalogue.types})
        found.append(Sample(name="nodepools_cost_total", labels=(("nodepool", name),), value=cost))
    return tuple(found)
