"""The gauges of launches that come to nothing."""

from dataclasses import replace

from dovetail.model import names
from dovetail.rules.brake.unused_launches import stop_text, unused_launch, with_unused_launch
from dovetail.telemetry.metrics.ours.launch_brake import HELP, launch_samples
from tests.placement.builders import a_general_pool, a_snapshot
from worlds.disruption import NOW


def test_each_pool_says_whether_it_is_stopped_and_how_many_launches_were_of_no_use() -> None:
    stopped = replace(a_general_pool("stopped"), annotations={names.LAUNCHES_STOPPED: stop_text(NOW, "why")})
    pools = [a_general_pool("fine"), with_unused_launch(stopped, unused_launch("c", NOW - 5, ["uid"]), NOW)]

    samples = list(launch_samples(a_snapshot(pools=pools)))

    assert {(s.name, dict(s.labels)["nodepool"]): s.value for s in samples} == {
        ("launches_stopped", "fine"): 0.0,
        ("unused_launches", "fine"): 0.0,
        ("launches_stopped", "stopped"): 1.0,
        ("unused_launches", "stopped"): 1.0,
    }
    assert {s.name for s in samples} == HELP.keys()
