"""The rule book (docs/rules) is complete, its pages are current, and what it names exists.

Each rule has one id and one row. A row that says "same" or "different" names tests that `make test` runs; every id that
is cited anywhere in the project has its row. Without this, a renamed test or a rule that is dropped would leave a
promise that nothing shows.
"""

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from docs.tools.reference.rule_book import BOOK, Rule, RuleBookError, Subject, page_of, read_book
from tests.recorded import RESULTS
from tests.recorded.test_aws_traffic import PART

ROOT: Final = Path(__file__).parents[1]
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
# Numbers from before the rule book stand in its field "was", in recorded results, and in what is history.
NO_TEXTS: Final = frozenset({"build", "histories", "__pycache__", "node_modules"})
ENDINGS: Final = (".py", ".md", ".yaml", ".toml", "Makefile")
MAY_HOLD_OLD_NUMBERS: Final = ("docs/rules/", "tests/recorded/", "CHANGELOG.md", "tests/test_rules.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Rule):
    """One rule, and the page that it is on."""

    where: str
    page: str

    @property
    def prefix(self) -> str:
        return self.id.partition("-")[0]

    @property
    def promises(self) -> bool:
        return self.mark in ("same", "different")


@cache
def rows() -> tuple[Row, ...]:
    """Every rule."""
    return tuple(
        Row(where=f"docs/rules/{subject.name}.toml: {rule.id}", page=subject.name, **asdict(rule))
        for subject in read_book(BOOK)
        for section in subject.sections
        for rule in section.rules
    )


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


def test_every_id_is_defined_once() -> None:
    assert_none(one for one, times in Counter(row.id for row in rows()).items() if times > 1)
    assert_none(row.where for row in rows() if not ID.fullmatch(row.id))


def test_every_row_says_which_number_it_had() -> None:
    """The same number under the letter of its document; none where the rule book has split a rule."""
    before = {row.where: (row.was, CHAPTERS[row.prefix].letter + row.id[len(row.prefix) :]) for row in rows()}

    assert_none(f"{where}: {was}" for where, (was, wanted) in before.items() if was not in (wanted, ""))


def test_every_rule_has_a_text_and_says_why_it_is_not_the_same() -> None:
    assert_none(row.where for row in rows() if len(row.rule) < 10)
    assert_none(f"{row.where}: {row.mark}" for row in rows() if row.mark != "same" and not row.note)


@pytest.mark.parametrize("subject", read_book(BOOK), ids=lambda subject: subject.name)
def test_the_page_is_that_of_the_book(subject: Subject) -> None:
    page = BOOK / f"{subject.name}.md"
    assert page.read_text(encoding="utf-8") == page_of(subject), "run `make reference`"


def test_every_page_is_of_a_file_of_the_book() -> None:
    assert {page.stem for page in BOOK.glob("*.md")} - {"README"} == {subject.name for subject in read_book(BOOK)}


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


RULE = """
[[section.rule]]
id = "PLC-1"
was = ""
rule = "What Karpenter does."
mark = "different"
note = "what we do instead"
modules = ["a/module.py"]
tests = ["tests/test_a.py::test_one", "tests/test_a.py::test_two", "tests/test_b.py::test_three"]
"""
HEAD = 'title = "A subject"\nintro = "Words."\n[[section]]\ntitle = "A part"\nlevel = 2\ntext = "Of it."\n'


def test_a_rule_is_written_for_people(tmp_path: Path) -> None:
    (tmp_path / "subject.toml").write_text(HEAD + RULE)

    [subject] = read_book(tmp_path)

    assert page_of(subject).partition("-->")[2].split("\n\n")[1:] == [
        "# A subject",
        "Words.",
        "## A part",
        "Of it.",
        "#### PLC-1",
        "What Karpenter does.",
        "**different**: what we do instead",
        "*In* `a/module.py`. *Shown by* `tests/test_a.py`: `test_one`, `test_two`, `tests/test_b.py`: `test_three`.\n",
    ]


@pytest.mark.parametrize(
    ("said", "instead", "fault"),
    [
        ('was = ""\n', "", "subject.toml: PLC-1: missing, or not known: was"),
        ('was = ""\n', 'was = ""\nwhy = ""\n', "subject.toml: PLC-1: missing, or not known: why"),
        ('"different"', '"alike"', "subject.toml: PLC-1: mark: 'alike' is none of same, different, not ours, open"),
        ("level = 2\n", "", "subject.toml: A part: missing, or not known: level"),
    ],
)
def test_a_file_that_is_not_of_the_book_names_its_fault(tmp_path: Path, said: str, instead: str, fault: str) -> None:
    (tmp_path / "subject.toml").write_text((HEAD + RULE).replace(said, instead))

    with pytest.raises(RuleBookError, match=f"^{re.escape(fault)}$"):
        read_book(tmp_path)
