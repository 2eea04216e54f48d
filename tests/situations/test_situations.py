"""What commands say in each situation of the table: asked of a worker by the command line itself."""

from pathlib import Path

import pytest

from tests.situations.scene import Situation, answered, played
from tests.situations.table import SITUATIONS


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
async def test_the_answer_is_true(situation: Situation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLUSTER_NAME", "DOVETAIL_WORLD", "DOVETAIL_SERVICE", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    faults = []
    async with played(situation, tmp_path) as address:
        for asks in situation.asks:
            code, text = await answered(asks, address)
            faults += [f"{asks.command}: {fault}\n{text}" for fault in asks.faults(code, text)]
    assert not faults, "\n".join(faults)


def test_no_situation_stands_twice_and_each_asks() -> None:
    assert len({each.name for each in SITUATIONS}) == len(SITUATIONS)
    assert all(each.asks and all(asks.says for asks in each.asks) for each in SITUATIONS)
