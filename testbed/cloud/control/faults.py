"""Declared faults: what goes wrong with a call, and whether before its effect or after it.

A fault *after* the effect is the one that matters: the instance is launched and the caller does not learn of it. A
rule: `op`, `service`, `has` (text in the JSON of the input), `dryRun`, `times`, `skip`, `share` choose the call;
`when`, `answer`, `code`, `message`, `status`, `delay` say what happens. Missing keys match anything.
"""

import json
import random
import threading
from dataclasses import dataclass
from typing import Any, Literal

from testbed.cloud.control.buckets import Buckets
from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import Call
from testbed.cloud.json_object import Json
from testbed.cloud.state.world import World

Spoiling = Literal["error", "late", "drop", "truncate", "cut", "half", "double"]
ANSWERS = ("error", "late", "drop", "truncate", "cut", "half", "double")
NEEDS_AN_ANSWER = ("truncate", "cut", "half", "double")  # there is no body to spoil before the effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault that strikes one call."""

    when: Literal["before", "after"]
    answer: Spoiling
    delay: float
    error: AwsError

    def as_note(self) -> Json:
        """How the ledger records it."""
        return {"when": self.when, "answer": self.answer, "code": self.error.code, "delay": self.delay}


def spoiled(result: Json, fault: Fault | None) -> Json:
    """The answer with the first half of each list, or with each member of its lists twice, where the fault says so."""
    if fault is None or fault.answer not in ("half", "double"):
        return result

    def of(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return value[: len(value) // 2] if fault.answer == "half" else [one for one in value for _ in range(2)]

    return {name: of(value) for name, value in result.items()}


def read_fault(rule: Json) -> Fault:
    """A rule's consequence; a refusal strikes before the effect unless it says otherwise, everything else after."""
    answer = rule.get("answer", "late" if "delay" in rule and "code" not in rule else "error")
    when = rule.get("when", "before" if answer == "error" else "after")
    if answer not in ANSWERS or when not in ("before", "after"):
        raise ValueError(f"a fault answers {', '.join(ANSWERS)}, before or after: {rule}")
    if when == "before" and answer in NEEDS_AN_ANSWER:
        raise ValueError(f"{answer} spoils an answer, so it strikes after the effect: {rule}")
    error = AwsError(
        rule.get("code", "InternalError"),
        rule.get("message", "An internal error has occurred"),
        int(rule.get("status", 500 if "code" not in rule else 400)),
    )
    return Fault(when=when, answer=answer, delay=float(rule.get("delay", 0)), error=error)


def _strikes(rule: Json, call: Call, text: str) -> bool:
    if rule.get("op", call.operation) != call.operation or rule.get("service", call.service) != call.service:
        return False
    if "dryRun" in rule and bool(rule["dryRun"]) != bool(call.params.get("DryRun")):
        return False
    return str(rule.get("has", "")) in text


class Faults:
    """Chooses the fault of each call, and keeps AWS's request rates where the world declares them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._skipped: dict[int, int] = {}
        self._chance = random.Random(0)
        self._buckets = Buckets(world)
        world.on_change(self._forget)

    def _forget(self, changed: Json) -> None:
        with self._lock:
            if "fail" in changed:
                self._skipped.clear()

    def strike(self, call: Call) -> Fault | None:
        """The first declared fault that fits this call, counted; else a throttle if it comes too fast."""
        text = json.dumps(call.params, default=str)
        with self._world.lock:
            for index, rule in self._world.rules_left("fail"):
                strikes = _strikes(rule, call, text) and self._chance.random() < float(rule.get("share", 1.0))
                if strikes and not self._let_pass(index, rule):
                    self._world.use("fail", index)
                    return read_fault(rule)
        return self._throttled(call)

    def _let_pass(self, index: int, rule: Json) -> bool:
        passed = self._skipped.get(index, 0)
        self._skipped[index] = passed + 1
        return passed < int(rule.get("skip", 0))

    def _throttled(self, call: Call) -> Fault | None:
        error = self._buckets.refusal(call)
        return None if error is None else Fault(when="before", answer="error", delay=0, error=error)
