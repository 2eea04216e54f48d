"""The rule book (docs/rules) is complete, and what it names exists.

Each rule has one id and one row. A row that says "same" or "different" names tests that `make test` runs; every id that
is cited anywhere in the project has its row. Without this, a renamed test or a rule that is dropped would leave a
promise that nothing shows.
"""

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.recorded import RESULTS
from tests.recorded.test_aws_traffic import PART

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ROOT / "docs" / "rules"
COLUMNS: Final = ("id", "was", "rule", "Dovetail", "module", "test")
VERDICTS: Final = re.compile(r"same(?:$|[:;,]? \S)|different: \S|not ours: \S|open: \S")
NOT_IN_MAKE_TEST: Final = frozenset({"soak", "skip", "skipif", "xfail"})


class Chapter(NamedTuple):
    """The rules of one prefix: the letter that they had before, their page, and how many there are at least."""

    letter: str
    page: str
    rules: int


CHAPTERS: Final = {
    "PLC": Chapter("S", "placement", 220),
    "PLQ": Chapter("Q", "placement", 26),
    "PLB": Chapter("B", "placement", 21),
    "PLF": Chapter("F", "placement", 40),
    "PLT": Chapter("T", "placement", 126),
    "DIS": Chapter("D", "disruption", 200),
    "DIQ": Chapter("Q", "disruption", 24),
    "DIT": Chapter("T", "disruption", 145),
    "TRM": Chapter("T", "termination", 38),
    "PLM": Chapter("P", "lifecycle", 14),
    "LIF": Chapter("L", "lifecycle", 57),
    "GCR": Chapter("G", "lifecycle", 16),
    "NPL": Chapter("N", "lifecycle", 28),
    "STA": Chapter("S", "lifecycle", 21),
    "CLD": Chapter("C", "lifecycle", 16),
    "KWK": Chapter("K", "lifecycle", 16),
    "OPS": Chapter("O", "lifecycle", 6),
    "MET": Chapter("M", "lifecycle", 6),
    "EVT": Chapter("V", "lifecycle", 16),
    "BEH": Chapter("B", "lifecycle", 112),
    "API": Chapter("A", "api", 27),
    "DUR": Chapter("D", "durability", 29),
    "AWS": Chapter("W", "aws", 188),
    "MOT": Chapter("M", "aws", 20),
}
ID: Final = re.compile(rf"(?<![\w./-])(?:{'|'.join(CHAPTERS)})-\d+[a-z]?(?!\w)")
OLD_NUMBER: Final = re.compile(rf"(?<![\w./-])[{''.join({c.letter for c in CHAPTERS.values()})}]-\d+[a-z]?(?!\w)")
# Numbers from before the rule book stand in its column "was", in recorded results, and in what is history.
NO_TEXTS: Final = frozenset({"build", "histories", "__pycache__", "node_modules"})
ENDINGS: Final = (".py", ".md", ".yaml", ".toml", "Makefile")
MAY_HOLD_OLD_NUMBERS: Final = ("docs/rules/", "tests/recorded/", "CHANGELOG.md", "tests/test_rules.py")


class Row(NamedTuple):
    """One rule."""

    where: str
    page: str
    id: str
    was: str
    rule: str
    verdict: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return self.id.partition("-")[0]

    @property
    def promises(self) -> bool:
        return self.verdict.startswith(("same", "different"))


def cells_of(line: str) -> tuple[str, ...]:
    """What stands between the bars; a bar behind a backslash is text."""
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])


@cache
def tables() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Place, page and cells of every line of the rule book that belongs to a table of rules, headers too."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        inside = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            cells = cells_of(line) if line.startswith("|") else ()
            inside = bool(cells) and (inside or cells[0] == "id" or bool(ID.fullmatch(cells[0])))
            if inside and set(line) - set("|- "):
                found.append((f"docs/rules/{page.name}:{number}: {cells[0]}", page.stem, cells))
    return tuple(found)


def rows() -> Iterator[Row]:
    """Every rule."""
    for where, page, cells in tables():
        if len(cells) == len(COLUMNS) and cells != COLUMNS:
            id_, was, rule, verdict, module, test = cells
            yield Row(where, page, id_, was, rule, verdict, quoted(module), quoted(test))


def quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


@cache
def texts() -> dict[str, str]:
    """The project's texts by path, all but recorded histories and the page that the rule book replaces."""
    found = {}
    for folder, folders, files in os.walk(ROOT):  # which does not follow links
        folders[:] = [name for name in folders if not name.startswith(".") and name not in NO_TEXTS]
        for name in files:
            file = Path(folder, name)
            path = file.relative_to(ROOT).as_posix()
            if name.endswith(ENDINGS):
                found[path] = file.read_text()
    return found


# --- tests as the rule book names them


def marks_of(decorators: Sequence[ast.expr]) -> set[str]:
    """Names of pytest's marks among expressions: `pytest.mark.soak`, `pytest.mark.skipif(...)`."""
    plain = [one.func if isinstance(one, ast.Call) else one for one in decorators]
    return {one.attr for one in plain if isinstance(one, ast.Attribute)}


def marks_of_module(tree: ast.Module) -> set[str]:
    """What `pytestmark` says, of one mark or of a list."""
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]
    ]
    return {mark for value in values for mark in marks_of(value.elts if isinstance(value, ast.List) else [value])}


@cache
def found_in(path: str) -> frozenset[str]:
    """The tests of a file that `make test` runs, as `function` or `Class::function`."""
    file = ROOT / path
    if not file.is_file() or not file.name.startswith("test_"):
        return frozenset()
    tree = ast.parse(file.read_text())
    return frozenset() if marks_of_module(tree) & NOT_IN_MAKE_TEST else frozenset(_collected(tree.body, ""))


def _collected(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if marks_of(node.decorator_list) & NOT_IN_MAKE_TEST:
            continue
        if isinstance(node, ast.ClassDef):
            yield from _collected(node.body, f"{prefix}{node.name}::") if node.name.startswith("Test") else ()
        elif node.name.startswith("test_"):
            yield prefix + node.name


def parameters() -> dict[str, set[str]]:
    """The parameters of tests that compare recorded results: only these are named one by one."""
    return {
        "tests/recorded/test_recorded_results.py::test_recorded_results_agree": {
            file.name.removesuffix(".jsonl.gz") for file in RESULTS.glob("*.jsonl.gz")
        },
        "tests/recorded/test_aws_traffic.py::test_recorded_traffic_agrees": set(PART),
    }


def runs_in_make_test(test: str) -> bool:
    """`path::function`, or `path::function[parameter]` of a recorded result."""
    name, bracket, rest = test.partition("[")
    path, _, function = name.partition("::")
    if function not in found_in(path):
        return False
    return not bracket or rest.removesuffix("]") in parameters().get(name, set())


def assert_none(found: Iterable[str]) -> None:
    """Each on a line of its own, since many may be wrong after a file has moved."""
    lines = sorted(found)
    assert not lines, "\n".join(["", *lines])


# --- the rule book itself


@pytest.mark.parametrize("prefix", CHAPTERS)
def test_every_rule_of_a_chapter_has_a_row_on_its_page(prefix: str) -> None:
    """So that no test below passes on a book that is not found, or not read."""
    found = [row for row in rows() if row.prefix == prefix]

    assert len(found) >= CHAPTERS[prefix].rules
    assert {row.page for row in found} == {CHAPTERS[prefix].page}


def test_every_table_has_the_six_columns() -> None:
    assert_none(where for where, _, cells in tables() if len(cells) != len(COLUMNS))
    assert {cells for _, _, cells in tables() if cells[0] == "id"} == {COLUMNS}


def test_every_id_is_defined_once() -> None:
    assert_none(one for one, times in Counter(row.id for row in rows()).items() if times > 1)
    assert_none(row.where for row in rows() if not ID.fullmatch(row.id))


def test_every_row_says_which_number_it_had() -> None:
    """The same number under the letter of its document; – where the rule book has split a rule."""
    before = {row.where: (row.was, CHAPTERS[row.prefix].letter + row.id[len(row.prefix) :]) for row in rows()}

    assert_none(f"{where}: {was}" for where, (was, wanted) in before.items() if was not in (wanted, "–"))


def test_every_rule_has_a_text_and_a_verdict() -> None:
    assert_none(row.where for row in rows() if len(row.rule) < 10)
    assert_none(f"{row.where}: {row.verdict}" for row in rows() if not VERDICTS.match(row.verdict))


def test_every_promise_names_a_test() -> None:
    assert_none(row.where for row in rows() if row.promises and not row.tests)


def test_every_test_that_a_row_names_runs_in_make_test() -> None:
    assert_none(f"{row.where}: {test}" for row in rows() for test in row.tests if not runs_in_make_test(test))


def test_every_module_that_a_row_names_exists() -> None:
    assert_none(f"{row.where}: {name}" for row in rows() for name in row.modules if not (ROOT / name).exists())


# --- citations


def test_every_id_that_is_cited_has_a_row() -> None:
    defined = {row.id for row in rows()}
    cited = {(path, one) for path, text in texts().items() for one in ID.findall(text)}

    assert len(cited) > 500
    assert_none(f"{path}: {one}" for path, one in cited if one not in defined)


def test_no_rule_is_cited_by_a_number_of_two_meanings() -> None:
    """`S-20` was a rule of placement and one of cluster state."""
    assert_none(
        f"{path}: {one}"
        for path, text in texts().items()
        if not path.startswith(MAY_HOLD_OLD_NUMBERS)
        for one in OLD_NUMBER.findall(text)
    )


# --- the checks themselves


@pytest.mark.parametrize(
    "test",
    [
        "tests/test_rules.py::test_no_such_test",
        "tests/no_such_file.py::test_every_id_is_defined_once",
        "tests/test_rules.py",
        "tests/recorded/test_recorded_results.py::test_recorded_results_agree[no-such-file]",
        "tests/recorded/test_aws_traffic.py::test_all_recorded_traffic_agrees",  # only in `make soak`
        "tests/cluster/test_kills.py::test_a_killed_worker_costs_nothing_on_real_servers",  # a file of soak tests
    ],
)
def test_a_test_that_make_test_does_not_run_is_seen(test: str) -> None:
    assert not runs_in_make_test(test)


@pytest.mark.parametrize(
    "test",
    [
        "tests/test_rules.py::test_every_id_is_defined_once",
        "tests/ports/test_pods.py::TestListing::test_the_view_finds_the_same_pods",
        "tests/recorded/test_recorded_results.py::test_recorded_results_agree[placement]",
        "tests/recorded/test_aws_traffic.py::test_recorded_traffic_agrees[launches/basic]",
    ],
)
def test_a_test_that_make_test_runs_is_found(test: str) -> None:
    assert runs_in_make_test(test)


def test_a_bar_behind_a_backslash_is_text() -> None:
    assert cells_of(r"| a | b \| c | d |") == ("a", r"b \| c", "d")
