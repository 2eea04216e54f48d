"""The step that reads warnings runs for an hour; the link to Temporal may be renewed meanwhile."""

from types import SimpleNamespace
from typing import Any, cast

from temporalio.client import Client

from dovetail.activities.interruptions.direct_answers import DirectAnswers
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.messages.interruptions import Interruption

WARNING = Interruption(id="i-1", reason="spot_interrupted", instances=("i-1",), at=0.0)


class Clients:
    """The client that is to be used now, and what was started through each."""

    def __init__(self) -> None:
        self.now = "old"
        self.started: list[tuple[str, str, Any]] = []

    def __call__(self) -> Client:
        used = self.now

        async def start_workflow(name: str, given: Any, **options: Any) -> None:
            self.started.append((used, name, options["priority"].priority_key))

        return cast(Client, SimpleNamespace(start_workflow=start_workflow))


async def test_an_answer_is_started_through_the_client_of_the_moment_and_before_all_others() -> None:
    clients = Clients()
    nobody: Any = None
    answering: Any = SimpleNamespace(ours=list)
    answers = DirectAnswers(answering, nobody, lambda: 0.0, lambda: False, why_unfit=str)
    step = WatchInterruptions("c", nobody, lambda: 0.0, answers, clients)

    await step._start([WARNING])
    clients.now = "new"
    await step._start([WARNING])

    assert clients.started == [("old", "AnswerInterruption", 1), ("new", "AnswerInterruption", 1)]
