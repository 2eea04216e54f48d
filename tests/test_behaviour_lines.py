"""Every line of docs/behaviour.md about placement names tests that exist.

The list is the acceptance list; a line that points to a test which was renamed or never written proves nothing.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_LINE = re.compile(r"\| (S-[^|]*?) *\|([^|]*)\|([^|]*)\|$", re.MULTILINE)


def _names() -> set[str]:
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"def test_(\w+)", file.read_text())}


def _lines() -> list[tuple[str, str, str]]:
    placement = (ROOT / "docs/behaviour.md").read_text().partition("\n## Disruption")[0]
    return [(rule, here.strip(), held.strip()) for rule, here, held in _LINE.findall(placement)]


def _missing(held: str, names: set[str]) -> list[str]:
    missing = []
    for part in re.split(r"; |, (?=vectors/)", held):
        kind, _, words = part.partition(": ")
        if part.startswith(("vectors/", "metrics")) or not words:
            continue
        wanted = re.sub(r"[^a-z0-9]+", "_", words.lower().replace("…", "").replace("'", "")).strip("_")
        if not any(name.startswith(wanted) for name in names):
            missing.append(f"{kind}: {words}")
    return missing


def test_every_test_that_a_placement_rule_names_exists() -> None:
    names = _names()
    found = {rule: missing for rule, _, held in _lines() if (missing := _missing(held, names))}
    assert found == {}


def test_a_placement_rule_without_a_test_says_that_it_is_not_ours() -> None:
    bare = [(rule, here) for rule, here, held in _lines() if held in ("–", "")]
    words = ("not ours", "not implemented", "not here", "the cloud picks", "nothing is recorded")
    assert [rule for rule, here in bare if not any(word in here for word in words)] == []


@pytest.mark.parametrize("rule", [1, 89, 120, 138, 175, 200, 225])
def test_rules_are_found_in_the_list(rule: int) -> None:
    """So that the two tests above cannot pass on an empty list."""
    assert any(re.search(rf"S-{rule}\b", line) or _spans(line, rule) for line, _, _ in _lines())


def _spans(line: str, rule: int) -> bool:
    return any(int(a) <= rule <= int(b) for a, b in re.findall(r"S-(\d+) to S-(\d+)", line))
