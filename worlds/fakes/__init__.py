"""A world of a few dictionaries behind the ports, with a clock that only moves when a step pauses.

Versions, conflicts, finalizers and UIDs behave as on the API server; every write and every launch is in `ledger`. The
cache shows writes at once unless `hidden` names them. `at` schedules what others do at a moment: pods end, kubelets
report, instances die.
"""

from worlds.fakes.cloud import FakeCloud
from worlds.fakes.lookups import FakeLookups
from worlds.fakes.nodes import FakeClaims, FakeNodes
from worlds.fakes.pods import FakePods, PodsMadeAnew
from worlds.fakes.pools import FakeNamespaces, FakePools, FakeRules
from worlds.fakes.ports import (
    FakeCatalogues,
    FakeNotices,
    FakeStarts,
    a_scrape,
    breaker_memory,
    create_ties,
    delete_ports,
    deleting,
    departure_ports,
    detach_ports,
    drain_ports,
    followers,
    heartbeating,
    holds,
    join_ports,
    kept_places,
    live_pauses,
    mark_ports,
    on_duty,
    returned_moves,
    step_notices,
    unasked,
    unlimited,
)
from worlds.fakes.world import World

__all__ = [
    "FakeCatalogues",
    "FakeClaims",
    "FakeCloud",
    "FakeLookups",
    "FakeNamespaces",
    "FakeNodes",
    "FakeNotices",
    "FakePods",
    "FakePools",
    "FakeRules",
    "FakeStarts",
    "PodsMadeAnew",
    "World",
    "a_scrape",
    "breaker_memory",
    "create_ties",
    "delete_ports",
    "deleting",
    "departure_ports",
    "detach_ports",
    "drain_ports",
    "followers",
    "heartbeating",
    "holds",
    "join_ports",
    "kept_places",
    "live_pauses",
    "mark_ports",
    "on_duty",
    "returned_moves",
    "step_notices",
    "unasked",
    "unlimited",
]
