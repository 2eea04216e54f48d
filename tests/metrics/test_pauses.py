"""The gauge dovetail_paused: what holds for all pools, and what holds for each by whatever pause."""

from dataclasses import replace

from dovetail.model import names
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.ours.pauses import HELP, pause_samples
from tests.model.test_pauses import a_paused_cluster


def held(lines: list[str]) -> set[str]:
    return {line.partition(" ")[0] for line in lines if line.endswith(" 1")}


def test_each_pool_has_what_holds_it_and_all_pools_what_holds_all() -> None:
    cluster = a_paused_cluster("expiry", mine="disruption", other="false")

    lines = list(measured(pause_samples(cluster), HELP, "dovetail_"))

    assert held(lines) == {
        'dovetail_paused{what="expiry",pool=""}',
        'dovetail_paused{what="expiry",pool="mine"}',
        'dovetail_paused{what="expiry",pool="other"}',
        'dovetail_paused{what="disruption",pool="mine"}',
    }
    assert len([line for line in lines if line.startswith("dovetail_paused{")]) == 4 * 3


def test_a_pause_that_has_ended_holds_nothing() -> None:
    cluster = a_paused_cluster("all", "2023-11-14T23:13:20Z", mine="")
    pool = replace(cluster.pools["mine"], annotations={names.PAUSED: "all", names.PAUSED_UNTIL: "2000-01-01T00:00:00Z"})
    later = replace(cluster, now=cluster.now + 3600.0, pools={"mine": pool})

    assert held(list(measured(pause_samples(later), HELP, "dovetail_"))) == set()
