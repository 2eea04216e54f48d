"""The list of mutations can be played: every rule has its row, and what is spoiled is found and changed.

Each night of the soak plays fifty of them (DOVETAIL_MUTATIONS), by a seed that is printed and can be given
(DOVETAIL_MUTATIONS_SEED).
"""

import ast
import os
import random
from itertools import groupby

import pytest

from tests.mutations.playing import GOOD, play
from tests.mutations.rules import Mutation, StaleMutation, named_tests, read_mutations, select, spoiled
from tests.test_rules import ROOT

SEED = os.environ.get("DOVETAIL_MUTATIONS_SEED") or str(random.SystemRandom().randrange(10**6))
COUNT = int(os.environ.get("DOVETAIL_MUTATIONS", "50"))
MODULE = '''
LIMIT: Final = 60  # seconds

class Wave:
    def next(self, pods):
        """One by one."""
        for pod in pods:
            if pod.critical and not (  # first
                pod.gone
            ):
                yield pod
            elif pod.gone: continue
        return first(pods, key='é', also=[1, 2])

def next(a, b):
    match a:
        case "x":
            return a + b
    return a + b
'''


def test_every_mutation_breaks_a_promise_and_fits_the_code() -> None:
    mutations = read_mutations()
    unpromised = [mutation for mutation in mutations if not named_tests(mutation.rule)]
    stale: list[str] = []
    by_file = groupby(sorted(mutations, key=lambda mutation: mutation.file), key=lambda mutation: mutation.file)
    for file, of_file in by_file:
        text = (ROOT / file).read_text()
        stale.extend(filter(None, (_misfit(text, mutation) for mutation in of_file)))

    assert unpromised == []
    assert stale == []


def _misfit(text: str, mutation: Mutation) -> str | None:
    try:
        changed = spoiled(text, mutation)
        ast.parse(changed)
    except (StaleMutation, SyntaxError) as error:
        return f"{mutation.at}: {error}"
    return None if changed != text else f"{mutation.at}: {mutation.code!r} stays as it is"


def mutated(at: str, code: str, becomes: str, nth: int | None = None) -> str:
    """The module above, with this in place of that."""
    one = Mutation(rule="BEH-2", what="it goes wrong", at=f"x.py:{at}", code=code, becomes=becomes, nth=nth)
    return spoiled(MODULE, one)


@pytest.mark.parametrize(
    ("at", "code", "becomes", "line"),
    [
        ("LIMIT", "60", "30", "LIMIT: Final = (30)  # seconds"),
        ("Wave.next", "return first( pods,key='é', also=[1,2] )", "return pods", "        return pods"),
        ("next", 'case  "x"', 'case "x" | "y"', '        case "x" | "y":'),
        ("Wave.next", "pod.critical and not pod.gone", "True", "            if (True):"),
        ("Wave.next", "pod.critical", "", "            if not (  # first"),
        ("Wave.next", "key='é'", "key='e'", None),
        ("Wave.next", "2", "", "        return first(pods, key='é', also=[1])"),
        ("Wave.next", "yield pod", "del pod", "                del pod"),
        ("Wave.next", "'é'", "key", "        return first(pods, key=(key), also=[1, 2])"),
        ("Wave.next", "for pod in pods: pass", "", None),
    ],
)
def test_code_is_found_by_what_it_is_in_what_the_place_names(
    at: str, code: str, becomes: str, line: str | None
) -> None:
    if line is None:  # a keyword is no expression, and this loop has another body
        with pytest.raises(StaleMutation, match="stands 0 times"):
            mutated(at, code, becomes)
        return
    changed = mutated(at, code, becomes)

    assert set(changed.splitlines()) - set(MODULE.splitlines()) <= {line}
    assert line in changed.splitlines()
    ast.parse(changed)


def test_statements_that_follow_one_another_become_others() -> None:
    loop = ast.unparse(ast.parse(MODULE).body[1].body[0].body[1])  # type: ignore[attr-defined]

    changed = mutated("Wave.next", loop, "pods = []\nif pods:\n    raise")

    assert "        pods = []\n        if pods:\n            raise\n        return first" in changed


def test_the_nth_of_several_is_changed_and_one_without_a_number_must_be_the_only_one() -> None:
    with pytest.raises(StaleMutation, match=r"'a \+ b' stands 2 times in x\.py:next"):
        mutated("next", "a + b", "a - b")
    with pytest.raises(StaleMutation, match="stands 2 times"):
        mutated("next", "a + b", "a - b", nth=3)

    assert mutated("next", "a + b", "a - b", nth=2).endswith("            return a + b\n    return (a - b)\n")


@pytest.mark.parametrize(("at", "code"), [("next", "b + a"), ("Wave", "a + b"), ("nobody", "a + b"), ("LIMIT", "'60'")])
def test_a_mutation_that_no_longer_fits_is_refused(at: str, code: str) -> None:
    with pytest.raises(StaleMutation, match=r"stands 0 times in x\.py"):
        mutated(at, code, "0")


def test_mutations_are_chosen_by_rule_and_by_prefix() -> None:
    mutations = read_mutations()

    assert select(mutations, []) == mutations
    assert {m.rule for m in select(mutations, ["BEH-2"])} == {"BEH-2"}
    assert {m.rule.partition("-")[0] for m in select(mutations, ["NPL", "BEH-2"])} == {"NPL", "BEH"}


@pytest.mark.soak
def test_some_of_the_mutations_are_noticed() -> None:
    chosen = random.Random(SEED).sample(read_mutations(), COUNT)
    print(f"\n{COUNT} mutations of seed {SEED}")
    wrong = []
    for mutation, verdict in play(chosen, "temporal"):
        print(f"{verdict:<12} {mutation.rule:<8} {mutation.at}: {mutation.what}", flush=True)
        if verdict not in GOOD:
            wrong.append((verdict, mutation))

    assert wrong == [], f"DOVETAIL_MUTATIONS_SEED={SEED} plays the same ones again"
