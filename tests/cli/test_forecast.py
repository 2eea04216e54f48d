"""`dovetail forecast`: windows, expiries, ends of pauses and waves of drift, by those who decide about them."""

import json
import time
from pathlib import Path

import pytest

from dovetail.answers.change.forecast import ForecastAnswer, forecast_markdown, forecast_text
from dovetail.answers.failures import CommandFailed
from dovetail.cli.main import main
from dovetail.model import names
from dovetail.model.values.time import format_time
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_planned_changes import DAY, a_fleet
from tests.cli.worlds import CLUSTER, answered_here, settings_of


async def forecast(world: SimulatedWorld, ahead: float, pool: str = "") -> ForecastAnswer:
    answer = await answered_here(settings_of(world), "forecast", **{"for": f"{ahead:.0f}s", "pool": pool})
    assert isinstance(answer, ForecastAnswer)
    return answer


def of_kind(answer: ForecastAnswer, what: str) -> list[str]:
    return [each.text for each in answer.coming if each.what == what]


async def test_a_window_opens_and_closes_every_day(tmp_path: Path) -> None:
    night = {"nodes": "0", "schedule": "0 6 * * *", "duration": "12h", "reasons": ["Drifted"]}
    world, _ = a_fleet(tmp_path, 4, budgets=[night, {"nodes": "50%"}])

    answer = await forecast(world, 2 * DAY)

    found = [(each.at[11:16], each.text) for each in answer.coming if each.what == "window"]
    closes, opens = "nodes that may go: Drifted 2 → 0", "nodes that may go: Drifted 0 → 2"
    assert sorted(found) == [("06:00", closes)] * 2 + [("18:00", opens)] * 2


async def test_expiries_say_whether_the_node_is_replaced_first(tmp_path: Path) -> None:
    world, _ = a_fleet(tmp_path, 2)
    first, second = world.objects("NodeClaim")
    first["spec"]["expireAfter"], second["spec"]["expireAfter"] = "1h", "2h"
    first["metadata"].setdefault("annotations", {})[names.REPLACE_FIRST] = "true"
    world.put_raw(first)
    world.put_raw(second)

    answer = await forecast(world, DAY)

    assert of_kind(answer, "expiry") == [
        "n1 expires and is replaced first",
        "n2 expires and is deleted, and its pods wait for new nodes",
    ]
    assert (await forecast(world, 5400.0)).coming[-1].nodes == ("n1",)


async def test_drift_that_stands_goes_in_waves_and_the_rest_is_named(tmp_path: Path) -> None:
    world, _ = a_fleet(tmp_path, 3, budgets=[{"nodes": "1"}])
    changed = world.objects("NodePool")[0]
    changed["spec"]["template"]["metadata"] = {"labels": {"tier": "web"}}
    changed["metadata"]["annotations"][names.NODE_POOL_HASH] = "1"
    world.put_raw(changed)
    guarded = world.objects("Pod")[0]
    guarded["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: "true"}
    world.put_raw(guarded)

    answer = await forecast(world, DAY)

    assert of_kind(answer, "wave") == ["1 drifted node goes, 1 new one comes"] * 2
    assert [(stay.node, stay.reason) for stay in answer.staying] == [("n1", "PodDoNotDisrupt")]
    assert "nothing lets them go until then: 1 node" in forecast_text(answer)


async def test_the_end_of_a_pause_is_due(tmp_path: Path) -> None:
    world, _ = a_fleet(tmp_path, 1)
    until = time.time() + 3600
    pool = world.objects("NodePool")[0]
    pool["metadata"]["annotations"] |= {names.PAUSED: "disruption", names.PAUSED_UNTIL: format_time(until)}
    world.put_raw(pool)

    answer = await forecast(world, DAY, "default")

    assert of_kind(answer, "pause") == ["the pause of disruption ends"]


def test_as_json_and_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world, _ = a_fleet(tmp_path, 1)
    where = ["--cluster", CLUSTER, "--world", str(world.file)]

    assert main(["forecast", "--for", "60d", "-o", "json", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["forecast", *where]) == 0

    assert (found["kind"], [each["what"] for each in found["coming"]]) == ("Forecast", ["expiry"])
    assert "nothing is due by itself" in capsys.readouterr().out


async def test_as_a_table(tmp_path: Path) -> None:
    world, _ = a_fleet(tmp_path, 1)

    assert "| expiry | default |" in forecast_markdown(await forecast(world, 60 * DAY))


async def test_a_pool_that_is_not_there(tmp_path: Path) -> None:
    world, _ = a_fleet(tmp_path, 1)

    with pytest.raises(CommandFailed, match="NodePool other: there is no such NodePool"):
        await forecast(world, DAY, "other")


def test_a_time_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world, _ = a_fleet(tmp_path, 1)

    assert main(["forecast", "--for", "soon", "--cluster", CLUSTER, "--world", str(world.file)]) == 1
    assert "--for: 'soon' is no time such as 7d, 36h or 90m" in capsys.readouterr().err
