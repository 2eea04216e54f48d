"""What `dovetail top` asks for: looks at the cluster, explanations, and commands that change something.

Each runs in a thread of its own and wakes the screen when it has an answer. A look is asked for so seldom that all of
them together take less than a tenth of one core.
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

from dovetail.cli.output import CommandFailed
from dovetail.cli.remote.asking import where_of
from dovetail.cli.remote.workers import Workers
from dovetail.cli.shown.documents import Document

IDLE_FACTOR: Final = 12.0  # a look is followed by a rest of so many times the processor time that it took
COMMAND_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Both documents, or why there are none."""

    status: Document | None = None
    nodes: Document | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Lines with a title, instead of the nodes."""

    title: str
    lines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One line: how a command ended."""

    text: str


Answer = Look | Told | Said


class Desk:
    """Answers stand in a queue; `wake` is called after each."""

    def __init__(self, given: argparse.Namespace, wake: Callable[[], None]) -> None:
        self.given = given
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._wake = wake
        self._ended = threading.Event()
        self._due = threading.Event()  # a look is wanted before its time

    def begin(self) -> None:
        """Look again and again."""
        threading.Thread(target=self._looking, daemon=True).start()

    def end(self) -> None:
        """No further looks."""
        self._ended.set()
        self._due.set()

    def ask(self, make: Callable[[Workers], Told]) -> None:
        """One question, over a connection of its own."""
        threading.Thread(target=self._asked, args=(make,), daemon=True).start()

    def command(self, *words: str) -> None:
        """One of our commands, as if it had been typed, and a look when it has ended."""
        threading.Thread(target=self._run, args=(words,), daemon=True).start()

    def _put(self, answer: Answer) -> None:
        self.answers.put(answer)
        self._wake()

    def _looking(self) -> None:
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
            self._due.wait(max(self.given.every, IDLE_FACTOR * (time.thread_time() - began)))
            self._due.clear()
        if workers is not None:
            workers.close()

    def _asked(self, make: Callable[[Workers], Told]) -> None:
        try:
            workers = Workers(where_of(self.given))
            try:
                self._put(make(workers))
            finally:
                workers.close()
        except CommandFailed as error:
            self._put(Said(text=str(error)))

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
            self._put(Said(text=f"{words[0]}: no answer in {COMMAND_SECONDS:.0f} s"))
            return
        said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        self._put(Said(text=said[-1] if said else f"{words[0]}: exit code {done.returncode}"))
        self._due.set()


def _place(given: argparse.Namespace) -> list[str]:
    """The same cluster."""
    named = (("--kubeconfig", given.kubeconfig), ("--context", given.context))
    return [word for option, value in named if value for word in (option, str(value))]


def look(workers: Workers) -> Look:
    """At everything."""
    return Look(status=workers.document("status"), nodes=workers.document("nodes"))
