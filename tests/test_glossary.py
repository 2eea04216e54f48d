"""The glossary is kept: words that it does not use are no names in the product, and a class name means one thing."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.picture import ROOT
from tests.test_architecture import product_files

# Parts of names that the glossary replaces by plain words, or that say nothing.
NOT_USED = frozenset(
    {"brought", "deed", "deeds", "desk", "heed", "heeded", "told", "whoever", "keeper", "purse", "victim"}
)
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
        "Done",
        "Entry",
        "Eviction",
        "Freeze",
        "Identity",
        "Inbound",
        "Index",
        "Interruptions",
        "LaunchRequest",
        "LaunchedInstance",
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
        "Progress",
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
        "Store",
        "Story",
        "Subject",
        "Subnet",
        "Taint",
        "Target",
        "Template",
        "Term",
        "Totals",
        "UpkeepTask",
        "Waits",
        "Watch",
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


def banned_in(file: Path) -> list[str]:
    """Names of a file in which a word stands that the glossary does not use."""
    return sorted({name for name in names_in(ast.parse(file.read_text())) if words_of(name) & NOT_USED})


def test_words_that_the_glossary_does_not_use_are_no_names() -> None:
    found = {str(file.relative_to(ROOT)): banned for file in product_files() if (banned := banned_in(file))}
    assert found == {}
    assert words_of("was_told") & NOT_USED and words_of("ToldOnce") & NOT_USED and not words_of("tolden") & NOT_USED


def test_no_module_is_named_for_nothing() -> None:
    assert [str(file.relative_to(ROOT)) for file in product_files() if file.stem in NO_MODULES] == []


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for file in product_files():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(file.relative_to(ROOT)))
    many = {name for name, files in places.items() if len(files) > 1}
    assert many - MANY_MEANINGS == set(), "a second class of that name; the glossary may have a word"
    assert MANY_MEANINGS - many == set(), "take it off the list"
