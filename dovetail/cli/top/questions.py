"""What `dovetail top` asks for: looks at the cluster, explanations, and commands that change something.

Each runs in a thread of its own and wakes the screen when it has an answer. Looks are so infrequent that together they
take less than a tenth of one core.
"""

import argparse
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import read_document
from dovetail.answers.status.answer import ClusterStatus, NodesAnswer
from dovetail.cli.remote.asking import where_of
from dovetail.cli.remote.workers import Workers

IDLE_FACTOR: Final = 12.0  # a look is followed by a rest of this many times its processor time
COMMAND_SECONDS: Final = 60.0
# For savings a worker reads histories: it is asked at most once a minute, after a rest of twenty times the last
# duration.
SAVINGS_SECONDS: Final = 60.0
SAVINGS_FACTOR: Final = 20.0
SAVINGS_PERIOD: Final = "24h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Both answers, or why they are missing."""

    status: ClusterStatus | None = None
    nodes: NodesAnswer | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Lines with a title, shown instead of the nodes."""

    title: str
    lines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One line about how a command ended."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """What disruption saved in the last 24 hours; None if not known."""

    dollars: float | None


Answer = Look | Text | Remark | Savings


class Questions:
    """Answers are put in a queue; `wake` is called after each."""

    def __init__(self, given: argparse.Namespace, wake: Callable[[], None]) -> None:
        self.given = given
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._wake = wake
        self._ended = threading.Event()
        self._seen = threading.Event()  # a look has been answered
        self._due = threading.Event()  # a look is wanted at once

    def begin(self) -> None:
        """Look again and again."""
        threading.Thread(target=self._look_again, daemon=True).start()
        threading.Thread(target=self._ask_for_savings, daemon=True).start()

    def end(self) -> None:
        self._ended.set()
        self._seen.set()
        self._due.set()

    def ask(self, make: Callable[[Workers], Text]) -> None:
        """Ask one question, over a connection of its own."""
        threading.Thread(target=self._answer, args=(make,), daemon=True).start()

    def command(self, *words: str) -> None:
        """Run one of our commands, as if typed, and look again when it has ended."""
        threading.Thread(target=self._run, args=(words,), daemon=True).start()

    def _put(self, answer: Answer) -> None:
        self.answers.put(answer)
        self._wake()

    def _look_again(self) -> None:
        workers: Workers | None = None
        while not self._ended.is_set():
            began = time.thread_time()
            try:
                workers = workers or Workers(where_of(self.given))
                found = look(workers)
            except CommandFailed as error:
                found = Look(trouble=str(error))
                workers = None
            self._put(found)
            self._seen.set()
            self._due.wait(max(self.given.every, IDLE_FACTOR * (time.thread_time() - began)))
            self._due.clear()
        if workers is not None:
            workers.close()

    def _ask_for_savings(self) -> None:
        self._seen.wait()  # a worker makes one answer at a time: the screen's comes first
        took = 0.0
        while not self._ended.wait(max(SAVINGS_SECONDS, SAVINGS_FACTOR * took) if took else 0.0):
            began = time.monotonic()
            self._put(savings(self.given))
            took = time.monotonic() - began

    def _answer(self, make: Callable[[Workers], Text]) -> None:
        try:
            workers = Workers(where_of(self.given))
            try:
                self._put(make(workers))
            finally:
                workers.close()
        except CommandFailed as error:
            self._put(Remark(text=str(error)))

    def _run(self, words: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", "dovetail.cli.main", *words, *_place(self.given)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                env={**os.environ, "NO_COLOR": "1"},
            )
        except subprocess.TimeoutExpired:
            self._put(Remark(text=f"{words[0]}: no answer in {COMMAND_SECONDS:.0f} s"))
            return
        printed = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        self._put(Remark(text=printed[-1] if printed else f"{words[0]}: exit code {done.returncode}"))
        self._due.set()


def _place(given: argparse.Namespace) -> list[str]:
    """The options that name the same cluster."""
    named = (("--kubeconfig", given.kubeconfig), ("--context", given.context))
    return [word for option, value in named if value for word in (option, str(value))]


def look(workers: Workers) -> Look:
    return Look(
        status=read_document(ClusterStatus, workers.document("status")),
        nodes=read_document(NodesAnswer, workers.document("nodes")),
    )


def savings(given: argparse.Namespace) -> Savings:
    """The savings by a worker's answer; not known if Temporal, which keeps the record, does not answer it."""
    try:
        workers = Workers(where_of(given))
        try:
            return Savings(dollars=workers.document("savings", {"since": SAVINGS_PERIOD})["total"]["saved"])
        finally:
            workers.close()
    except CommandFailed:
        return Savings(dollars=None)
