"""`dovetail explain node`: pods of a node that leaves, which wait for others of their owner."""

from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.answers.explain.explain_node import HeldPod, pods_that_wait
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_web_pod, is_now

NOW = 5000.0
MARKED = is_now(names.DISRUPTION_REASON, reason="Drifted")


def waiting(share: float = 0.25, arriving: int = 3, **of_claim: Any) -> tuple[HeldPod, ...]:
    here = [a_web_pod("web-1", ready=True), a_web_pod("agent", owners=(DAEMON,), ready=True)]
    others = [a_web_pod(f"other-{n}", node_name="node-2", ready=True) for n in range(11 - arriving)]
    new = [a_web_pod(f"new-{n}", node_name="node-3", ready=False, created=NOW - 10) for n in range(arriving)]
    snapshot = Snapshot(now=NOW, pods={pod.uid: pod for pod in (*here, *others, *new)})
    look: Any = SimpleNamespace(snapshot=snapshot, settings=SimpleNamespace(owner_share=share))
    given = {"deleting_since": NOW, "conditions": (MARKED,), **of_claim}
    return pods_that_wait(look, a_joined_claim(**given), here)


def test_a_pod_that_waits_is_named_with_what_it_waits_for() -> None:
    detail = "3 of 12 pods of ReplicaSet web are on their way"
    assert waiting() == (HeldPod(pod="apps/web-1", by="waits for its turn", detail=detail),)


@pytest.mark.parametrize(
    "given", [{"share": 0.0}, {"arriving": 2}, {"deleting_since": None}, {"conditions": ()}], ids=str
)
def test_no_pod_waits_where_there_is_no_limit_or_room_or_no_disruption(given: dict[str, Any]) -> None:
    assert waiting(**given) == ()
