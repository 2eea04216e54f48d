"""A roll-out under way when the workers are upgraded is an object in some state, and nothing else: later versions read
what every version wrote, keep all of it, and let no further node begin by it."""

import json
from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.api.own.node_rollout import NodeRollout
from dovetail.model.own.rollouts import RolloutState
from dovetail.model.values.json import Json
from tests.recorded.rollouts.record import FOLDER, left
from worlds.kept_rollouts import whole

RECORDED: dict[str, dict[str, Json]] = {file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
EACH = [(version, state) for version, objects in sorted(RECORDED.items()) for state in objects]


def test_each_version_recorded_every_state_that_it_had() -> None:
    assert "0.2.0" in RECORDED
    assert set(RECORDED["0.2.0"]) >= {
        *("Waiting", "Replacing", "Soaking", "Judging", "Awaiting", "Paused"),
        *("Complete", "RollingBack", "Failed"),
    }
    assert {state for _, state in EACH} == set(RolloutState), "a new state is recorded with its version"


@pytest.mark.parametrize(("version", "state"), EACH)
def test_what_a_version_wrote_is_read_kept_and_lets_as_many_nodes_begin(version: str, state: str) -> None:
    recorded = RECORDED[version][state]["object"]

    NodeRollout.model_validate(recorded)
    found = parse_rollout(recorded)

    assert (found.fault, str(found.status.state)) == ("", state)
    assert lost(recorded, whole(found)) == []
    assert left(found) == RECORDED[version][state]["left"]


def lost(before: Any, after: Any, place: str = "") -> list[str]:
    """What was written and is not written any more; what is new is nothing to mind."""
    if isinstance(before, dict):
        kept = after if isinstance(after, dict) else {}
        return [each for key in before for each in lost(before[key], kept.get(key), f"{place}.{key}")]
    if isinstance(before, list):
        same = isinstance(after, list) and len(after) == len(before)
        return [e for n, each in enumerate(before) for e in lost(each, after[n], f"{place}[{n}]")] if same else [place]
    return [] if before == after else [f"{place}: {before!r}, then {after!r}"]
