"""The glossary is kept: words that it does not use are no names in the product and stand in no docstring or comment, a
docstring says more than a name does, and a class name means one thing."""

import ast
import functools
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.picture import ROOT
from tests.test_architecture import product_files

# Parts of names that the glossary replaces by plain words, or that say nothing.
NOT_USED = frozenset(
    {
        "born",
        "brought",
        "dear",
        "dearest",
        "deed",
        "deeds",
        "desk",
        "heed",
        "heeded",
        "ill",
        "keeper",
        "lately",
        "poor",
        "purse",
        "tell",
        "telling",
        "tells",
        "told",
        "victim",
        "whoever",
    }
)
STORED = frozenset({"tell_interruptions"})  # Temporal has it in histories
# The same in sentences: a docstring or comment has a plain word for each.
NOT_WRITTEN = re.compile(r"\b(whoever|told|deeds?|desk|heed(ed|s)?|purse|victim)\b", re.IGNORECASE)
NO_MODULES = frozenset({"utils", "helpers", "common", "manager", "base", "misc"})
# Class names that stand for two things or more. The list only shrinks: a new class gets a name of its own.
MANY_MEANINGS = frozenset(
    {
        "Answer",
        "Answered",
        "Asked",
        "Budget",
        "BudgetAnswer",
        "Calls",
        "CapacityBuffer",
        "Check",
        "Cluster",
        "ClusterFacts",
        "ClusterIdentity",
        "Column",
        "Condition",
        "Decision",
        "Departure",
        "DisruptionPolicy",
        "Entry",
        "Eviction",
        "Freeze",
        "Inbound",
        "Interruptions",
        "Link",
        "Look",
        "Member",
        "Move",
        "Need",
        "NodeClaim",
        "NodeClass",
        "NodeOverlay",
        "NodePool",
        "Owner",
        "Part",
        "Place",
        "PoolStatus",
        "Prices",
        "Profile",
        "Recent",
        "Recording",
        "Refused",
        "Requirement",
        "Reservations",
        "Resolved",
        "Room",
        "Run",
        "Search",
        "SecurityGroup",
        "Source",
        "Subject",
        "Subnet",
        "Taint",
        "Target",
        "Template",
        "Term",
        "Totals",
        "UpkeepTask",
        "Waits",
    }
)


def names_in(tree: ast.AST) -> Iterator[str]:
    """Everything that the code gives a name to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def words_of(name: str) -> set[str]:
    """The parts of a name: set_aside, SetAside."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@dataclass(frozen=True, slots=True)
class Module:
    """What one module of the product gives names to and says."""

    names: frozenset[str]
    classes: frozenset[str]
    said: tuple[tuple[str, str], ...]  # names and their docstrings, where more stands behind them


@functools.cache
def modules() -> dict[str, Module]:
    """By path; each is read once."""
    return {str(file.relative_to(ROOT)): module_of(file.read_text()) for file in product_files()}


def module_of(source: str) -> Module:
    tree = ast.parse(source)
    named = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return Module(
        names=frozenset(names_in(tree)),
        classes=frozenset(each.name for each in named if isinstance(each, ast.ClassDef)),
        said=tuple((each.name, ast.get_docstring(each) or "") for each in named if len(each.body) > 1),
    )


def banned_in(module: Module) -> list[str]:
    """Names in which a word stands that the glossary does not use."""
    return sorted({name for name in module.names if words_of(name) & NOT_USED} - STORED)


def sentences_in(source: str) -> Iterator[str]:
    """The comments and docstrings of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield token.string


def test_words_that_the_glossary_does_not_use_are_no_names() -> None:
    found = {path: banned for path, module in modules().items() if (banned := banned_in(module))}
    assert found == {}
    assert words_of("was_told") & NOT_USED and words_of("ToldOnce") & NOT_USED and not words_of("tolden") & NOT_USED


def test_words_that_the_glossary_does_not_use_stand_in_no_docstring_or_comment() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {sentence}"
        for file in product_files()
        if NOT_WRITTEN.search(source := file.read_text())
        for sentence in sentences_in(source)
        if NOT_WRITTEN.search(sentence)
    ]
    assert found == []
    assert [bool(NOT_WRITTEN.search(text)) for text in sentences_in("a = 1  # as told\n")] == [True]


def test_a_docstring_says_more_than_the_name() -> None:
    """One or two words that all stand in the name, articles apart, tell a reader nothing."""
    found = [
        f"{path}: {name}"
        for path, module in modules().items()
        for name, docstring in module.said
        if (said := docstring.lower().strip(".").split())
        if set(said) - {"a", "an", "the", "of", "all"} <= words_of(name)
    ]
    assert found == []
    assert module_of('def a():\n    """B."""\n    return 1\n').said == (("a", "B."),)


def test_no_module_is_named_for_nothing() -> None:
    assert [str(file.relative_to(ROOT)) for file in product_files() if file.stem in NO_MODULES] == []


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path, module in modules().items():
        for name in module.classes:
            if not name.startswith("_"):
                places[name].add(path)
    many = {name for name, files in places.items() if len(files) > 1}
    assert many - MANY_MEANINGS == set(), "a second class of that name; the glossary may have a word"
    assert MANY_MEANINGS - many == set(), "take it off the list"
