"""Fake steps that answer what a test gives them, and remember what they were asked.

A fake stands for each activity of the real classes, under the same name and with the same types, so that a workflow
cannot see a difference. A fake that has nothing to say yet raises and is retried: the time-skipping server does not
skip while an activity runs, so a fake never waits.
"""

import inspect
import typing
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

Answer = Any


def not_yet(seconds: float = 1.0) -> ApplicationError:
    """What a waiting fake raises."""
    return ApplicationError(
        "not yet",
        type="NotYet",
        next_retry_delay=timedelta(seconds=seconds),
        category=ApplicationErrorCategory.BENIGN,
    )


class FakeSteps:
    """One script for all steps of a test: name -> a function of the step's argument, or a plain answer."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.calls: list[tuple[str, Any]] = []

    def names(self) -> list[str]:
        """The steps in the order in which they were called, each repeated call once."""
        result: list[str] = []
        for name, _ in self.calls:
            if not result or result[-1] != name:
                result.append(name)
        return result

    def arguments(self, name: str) -> list[Any]:
        """What a step was asked, call by call."""
        return [argument for called, argument in self.calls if called == name]

    def of(self, *classes: type) -> list[Callable[..., Any]]:
        """A fake for each step of these classes."""
        return [
            self._fake(name, method)
            for cls in classes
            for name, method in inspect.getmembers(cls, inspect.isfunction)
            if hasattr(method, "__temporal_activity_definition")
        ]

    def _fake(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        hints = typing.get_type_hints(method)
        answered = hints.pop("return", type(None))
        argument = next(iter(hints.values()), None)
        steps = self

        async def with_argument(given: Any) -> Any:
            return steps._answer(name, given)

        async def without_argument() -> Any:
            return steps._answer(name, None)

        fake: Callable[..., Any] = without_argument if argument is None else with_argument
        fake.__annotations__ = {"return": answered} if argument is None else {"given": argument, "return": answered}
        return activity.defn(name=name)(fake)

    def _answer(self, name: str, argument: Any) -> Any:
        self.calls.append((name, argument))
        answer = self.answers.get(name)
        if answer is None and name not in self.answers:
            raise ApplicationError(f"the test gave no answer for {name}", non_retryable=True)
        return answer(argument) if callable(answer) else answer
