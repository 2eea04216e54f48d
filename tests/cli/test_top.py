"""`dovetail top`: frames line by line, keys through a real terminal, 5,000 nodes."""

import argparse
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.columns import BY_KEY
from dovetail.answers.status.orders import checked_sort
from dovetail.cli.top.drawing import Shown, Size, frame, sparkline
from dovetail.cli.top.gantt import gantt_lines
from dovetail.cli.top.keys import keys_in
from dovetail.cli.top.questions import Savings, savings
from dovetail.cli.top.top import HELP, OF_ALL
from dovetail.cli.top.view import Group, View, items_of
from tests.cli.fleet import HISTORY, Served, documents, serving, the_nodes
from tests.cli.test_status_text import GOLDEN, NOW, a_status, status_in

SECONDS = 90.0
HELP_TEXT = "\n".join(HELP)
# A part of what is answered, by the key that asks for it. Each has words of its own: where two keys are taken at once,
# a line that stays the same is not sent again.
OF_THE_CLUSTER = {
    "m": "nothing would be done",
    "f": "a window opens",
    "l": "an empty node left",
    "v": "$31.50 were saved",
    "V": "namespace shop saved",
    "d": "two decisions are kept",
    "b": "both decide alike",
}
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def drawn(view: View, width: int, lines: int = 40, count: int = 5000) -> list[str]:
    nodes = the_nodes(count)
    shown = Shown(
        status=status_in(a_status()), nodes=nodes, items=items_of(nodes, view), prices=[60.0, 61.0, 63.2, 61.4]
    )
    shown.saved = [30.9, 31.1, 31.5]
    return frame(shown, view, Size(columns=width, lines=lines), Screen())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_screen_is_as_it_was_looked_at_and_fits(width: int) -> None:
    lines = drawn(View(), width)
    file, text = GOLDEN / f"top-{width}.txt", "\n".join(line.rstrip() for line in lines) + "\n"
    if os.environ.get("DOVETAIL_GOLDEN") == "write":
        file.write_text(text)

    assert text == file.read_text()
    assert len(lines) == 40 and [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize(("columns", "lines"), [(20, 6), (40, 10), (80, 24), (300, 100)])
def test_a_frame_has_as_many_lines_as_the_terminal_and_none_is_too_long(columns: int, lines: int) -> None:
    for count in (0, 1, 200):
        found = drawn(View(group="pool"), columns, lines, count)
        assert len(found) == lines
        if columns >= 80:
            assert max(map(len, found)) <= columns


def test_the_page_follows_the_cursor_to_both_ends() -> None:
    view = View(sort="name")
    first = drawn(view, 120)
    view.move(10**9, 5000)
    last = drawn(view, 120)

    assert any(line.startswith(">  ip-10-0-0-0.") for line in first)
    marked = [line for line in last if line.startswith(">")]
    assert len(marked) == 1 and any("of 5,000" in line and "–5,000" in line for line in last)


def test_groups_have_their_sums_and_fold() -> None:
    nodes = the_nodes(400)
    view = View(group="pool")
    items = items_of(nodes, view)
    heads = [item for item in items if isinstance(item, Group)]

    assert {head.name: head.nodes for head in heads} == {"default": 200, "batch": 100, "gpu": 100}
    assert sum(head.price for head in heads) == pytest.approx(sum(node.price or 0.0 for node in nodes.nodes))
    view.fold("default")
    assert len(items_of(nodes, view)) == len(items) - 200


def test_every_order_and_its_other_way_round() -> None:
    nodes = the_nodes(300)

    def first(sort: str, turned: bool = False) -> object:
        found = items_of(nodes, View(sort=sort, turned=turned))[0]
        assert not isinstance(found, Group)
        return BY_KEY[sort].value(found)

    rows = nodes.nodes
    assert first("price") == max(row.price or 0.0 for row in rows)
    assert first("price", True) == min(row.price or 0.0 for row in rows)
    assert first("cpu") == max(row.cpu_share for row in rows)
    assert first("age") == min(row.since for row in rows), "the oldest first"
    assert first("zone") == "eu-west-1a" and first("zone", True) == "eu-west-1c"


def test_a_filter_takes_words_fields_and_labels() -> None:
    nodes = the_nodes(200)

    def count(text: str) -> int:
        return len(items_of(nodes, View(filter=text)))

    assert count("") == 200
    assert count("pool=gpu") == 50
    assert count("pool=gpu market=spot") == sum(1 for i in range(200) if i % 4 == 3 and i % 3 == 0)
    assert count("team=ml") == 100
    assert count("PDB") == 4
    assert count("no-such-thing") == 0


def test_orders_are_read_as_eks_node_viewer_writes_them() -> None:
    assert checked_sort("creation=dsc") == ("age", True)
    assert checked_sort("price") == ("price", False)
    assert checked_sort("price=asc") == ("price", True)
    for wrong in ("colour", "price=", "price=up"):
        with pytest.raises(CommandFailed, match=f"--sort {wrong}: it is one of price"):
            checked_sort(wrong)


def test_keys_of_terminals_are_told_from_the_escape_key() -> None:
    assert list(keys_in("\x1b[A\x1bOB\x1b[6~xé\r\x7f".encode())) == [
        "up",
        "down",
        "pagedown",
        "x",
        "é",
        "enter",
        "backspace",
    ]
    assert list(keys_in(b"\x1b")) == ["escape"]
    assert list(keys_in(b"\x1b[1;5Cq")) == ["q"], "a sequence that means nothing here is passed over whole"


def test_a_history_is_drawn_as_bars_on_one_axis() -> None:
    lines = gantt_lines(HISTORY, NOW, 100)

    launch, wait, drain = lines[2:]
    assert launch.index("█") < wait.index("█") < drain.index("░")
    assert wait.count("█") > launch.count("█")
    assert max(map(len, lines)) <= 100


def test_prices_are_drawn_once_there_are_two() -> None:
    assert (sparkline([1.0], 10), sparkline([1.0, 2.0, 1.5], 10)) == ("", "▁█▅")


@pytest.mark.parametrize(
    ("columns", "saved", "words"),
    [
        (200, [31.5], "saved $31.50 in 24h"),
        (200, [30.0, 31.5], "saved ▁█ $31.50 in 24h"),
        (62, [30.0, 31.5], "+$1.40/h"),
        (200, [], "+$1.40/h"),
    ],
)
def test_savings_stand_beside_the_price_where_they_are_known_and_have_room(
    columns: int, saved: list[float], words: str
) -> None:
    nodes = the_nodes(1)
    shown = Shown(status=status_in(a_status()), nodes=nodes, items=[], prices=[60.0, 61.4], saved=saved)
    line = frame(shown, View(), Size(columns=columns, lines=40), Screen())[1]

    assert line.endswith(words) and len(line) <= columns


def test_savings_that_a_worker_does_not_know_are_not_shown(tmp_path: Path) -> None:
    def asked(total: object) -> Savings:
        answers = {"savings": {"total": {"saved": total}}} if total is not None else {}
        with serving(tmp_path, answers) as found:
            place = argparse.Namespace(kubeconfig=found.kubeconfig, context="", service="", namespace="dovetail")
            return savings(place)

    assert (asked(31.5), asked(None)) == (Savings(dollars=31.5), Savings(dollars=None))


class Session:
    """`dovetail top` in a terminal of its own. The screen is what was sent, without its codes."""

    def __init__(self, served: Served, *words: str) -> None:
        self.file, child = pty.openpty()
        termios.tcsetwinsize(child, (30, 120))
        self.sent = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dovetail.cli.main", "top", "--every", "1", *words],
            env={**os.environ, **served.environment, "TERM": "xterm"},
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)

    def presses(self, keys: str) -> None:
        """Type."""
        self.sent = ""
        os.write(self.file, keys.encode())

    def until(self, words: str) -> str:
        """Read until it has been shown; what was sent since the last key."""
        deadline = time.monotonic() + SECONDS
        while words not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, f"not within {SECONDS} s: {words!r} in {self.shown[-3000:]}"
            if select.select([self.file], [], [], left)[0]:
                self.sent += os.read(self.file, 65536).decode("utf-8", "ignore")
        return self.shown

    @property
    def shown(self) -> str:
        return CODES.sub("\n", self.sent)


@contextmanager
def a_session(served: Served, *words: str) -> Iterator[Session]:
    found = Session(served, *words)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()
        os.close(found.file)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, documents(5000)) as found:
        yield found


def test_a_person_looks_around_with_keys_in_a_real_terminal(served: Served) -> None:
    with a_session(served) as top:
        top.until("of 5,000")
        top.until("saved $31.50 in 24h")
        top.presses("g")
        top.until("grouped by pool")
        top.presses("ggg/pool=gpu\r")
        assert "of 1,250" in top.until("filter pool=gpu")
        top.presses("e")
        top.until("it stays")
        top.presses("\x1b")
        top.until("of 1,250")
        top.presses("h")
        top.until("drain the node")
        for key, words in OF_THE_CLUSTER.items():
            top.presses(f"q{key}")
            top.until(words)
        top.presses("qt3h\r")
        top.until("--at 3h")
        top.presses("q?")
        top.until("resume everything")
        top.presses("qc")
        top.until("why?")
        top.presses("\r")
        top.until("a reason is needed")
        top.presses("N")
        top.until("--now: why?")
        top.presses("\x1bo")
        top.until("dovetail rollout approve default-7f3c9a51d0")
        top.presses("qD")
        top.until("force, wait 6h or cancel?")
        top.presses("\r")
        top.until("nothing was decided")
        top.presses("Dwait 1y\r")
        top.until("wait and for how long")
        top.presses("q")
        top.process.wait(SECONDS)

    assert top.process.returncode == 0
    assert any("explain/node/gpu-" in path for path in served.asked)
    assert any("explain/node/gpu-" in path and path.endswith("at=3h") for path in served.asked)
    assert any("savings?" in path and "by=namespace" in path for path in served.asked)
    assert set(OF_THE_CLUSTER) == set(OF_ALL) and all(
        f"{key}:" in HELP_TEXT or f"{key} " in HELP_TEXT for key in OF_ALL
    )


def test_the_terminal_is_given_back_as_it_was(served: Served) -> None:
    with a_session(served) as top:
        before = termios.tcgetattr(top.file)
        top.until("of 5,000")
        assert "\x1b[?1049h" in top.sent
        top.presses("\x03")
        top.until("")
        top.process.wait(SECONDS)
        left = os.read(top.file, 65536).decode() if select.select([top.file], [], [], 1)[0] else ""
        after = termios.tcgetattr(top.file)

    assert "\x1b[?1049l" in top.sent + left and before == after


def test_without_a_terminal_one_screen_is_printed(served: Served) -> None:
    command = [sys.executable, "-m", "dovetail.cli.main", "top"]
    environment = {**os.environ, **served.environment, "COLUMNS": "100"}
    once = subprocess.run([*command, "--once"], env=environment, capture_output=True, text=True, check=False)
    refused = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    assert once.returncode == 0 and "of 5,000" in once.stdout and max(map(len, once.stdout.splitlines())) <= 100
    assert refused.returncode == 1 and "it needs a terminal" in refused.stderr
