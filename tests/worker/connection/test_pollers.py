"""A worker that asks for no work any more is lost, and one that falls between two questions is not."""

import time
from types import SimpleNamespace
from typing import Any, cast

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client

from dovetail.connection.pollers import POLLED_SECONDS, TYPE_ACTIVITY, AbsentWorkers


class Server:
    """Who asked, on which queue, how many seconds ago."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, TaskQueueType.ValueType], dict[str, float]] = {}
        self.namespace = "default"
        self.workflow_service = self
        self.questions = 0

    async def describe_task_queue(self, request: Any) -> Any:
        self.questions += 1
        ago = self.asked.get((request.task_queue.name, request.task_queue_type), {})
        now = time.time()
        pollers = [
            SimpleNamespace(identity=who, last_access_time=SimpleNamespace(ToSeconds=lambda s=s: now - s))
            for who, s in ago.items()
        ]
        return SimpleNamespace(pollers=pollers)


async def looks(server: Server, count: int, identity: str) -> list[bool]:
    absent, found = AbsentWorkers(), []
    for _ in range(count):
        await absent.look(cast(Client, server), "c", frozenset({identity}))
        found.append(absent.is_absent(identity))
        assert absent.is_absent(identity) == found[-1], "asked twice in one look, as for two singletons"
    return found


async def test_one_that_is_missing_twice_is_lost() -> None:
    assert await looks(Server(), 3, "1@gone") == [False, True, True]


async def test_one_that_asks_on_any_queue_lives() -> None:
    server = Server()
    server.asked[("dovetail/c/plan", TYPE_ACTIVITY)] = {"1@here": 30.0}
    assert await looks(server, 3, "1@here") == [False, False, False]


async def test_a_question_of_long_ago_or_on_another_cluster_s_queue_counts_for_nothing() -> None:
    server = Server()
    server.asked[("dovetail/c/plan", TYPE_ACTIVITY)] = {"1@gone": POLLED_SECONDS + 10.0}
    server.asked[("dovetail/other/plan", TYPE_ACTIVITY)] = {"1@gone": 1.0}
    assert await looks(server, 2, "1@gone") == [False, True]


async def test_one_that_was_seen_again_begins_anew() -> None:
    server, absent = Server(), AbsentWorkers()
    found = []
    for asks in (False, True, False, False):
        server.asked[("dovetail/c/control", TYPE_ACTIVITY)] = {"1@here": 1.0} if asks else {}
        await absent.look(cast(Client, server), "c", frozenset({"1@here"}))
        found.append(absent.is_absent("1@here"))
    assert found == [False, False, False, True]


async def test_nobody_is_looked_for_where_nobody_is_silent() -> None:
    """Three hundred clusters asked 60 times a second, where a namespace of Temporal Cloud answers 30."""
    server, absent = Server(), AbsentWorkers()
    await absent.look(cast(Client, server), "c", frozenset())
    assert server.questions == 0


async def test_one_question_is_enough_where_the_silent_ones_ask_for_plans() -> None:
    server, absent = Server(), AbsentWorkers()
    server.asked[("dovetail/c/plan", TYPE_ACTIVITY)] = {"1@here": 1.0, "2@here": 1.0}
    await absent.look(cast(Client, server), "c", frozenset({"1@here", "2@here"}))
    assert server.questions == 1
