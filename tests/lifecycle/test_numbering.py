"""The numbers of a static pool's claims: whichever workflow gives one, the limit of nodes holds (NPL-42, BEH-96)."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dovetail.lifecycle.numbering import Numbering, numbering_of, static_plan
from dovetail.messages.plans import claim_name
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.values.resources import NODES
from worlds.disruption import a_pair, a_pool

POOL = a_pool(replicas=2, limits={NODES: 3})


def numbered(pool: NodePool, number: int, **changes: object) -> NodeClaim:
    name = claim_name(pool.name, static_plan(pool), number)
    return replace(a_pair("n").claim, name=name, **changes)  # type: ignore[arg-type]


def unnumbered(name: str, **changes: object) -> NodeClaim:
    return replace(a_pair("n").claim, name=name, **changes)  # type: ignore[arg-type]


def marked(plan: str) -> dict[str, str]:
    return {names.OWNER: f"c/disrupt/{plan}"}


def test_what_a_pool_lacks_takes_the_lowest_number_and_a_replacement_the_highest() -> None:
    numbering = numbering_of(POOL, [numbered(POOL, 1)])
    assert (numbering.lowest(1), numbering.highest(1)) == ((0,), (2,))


def test_the_last_place_has_one_number_for_both() -> None:
    numbering = numbering_of(POOL, [numbered(POOL, 0), numbered(POOL, 1)])
    assert (numbering.lowest(1), numbering.highest(1)) == ((2,), (2,))


def test_claims_under_other_names_lower_the_end() -> None:
    numbering = numbering_of(POOL, [unnumbered("karpenters"), numbered(POOL, 2)])
    assert (numbering.end, numbering.lowest(3)) == (1, (0,))


def test_a_marked_node_reserves_a_place_for_its_replacement_until_that_is_there() -> None:
    """DIS-76, DIS-78: upstream reserves it in memory."""
    old = numbered(POOL, 0, annotations=marked("p1"))
    made = numbered(POOL, 2, annotations={names.PLAN: "p1/0"})

    awaited = [
        numbering_of(POOL, claims).awaited for claims in ([old], [old, made], [replace(old, deleting_since=1.0)])
    ]

    assert awaited == [1, 0, 0]


def test_without_a_limit_a_replacement_needs_no_number() -> None:
    numbering = numbering_of(replace(POOL, limits=None), [numbered(POOL, 0)])
    assert (numbering.room(7), numbering.lowest(2), numbering.highest(2)) == (7, (1, 2), ())


@given(st.integers(0, 6), st.sets(st.integers(0, 9)), st.integers(0, 3))
def test_all_free_numbers_together_fill_the_limit_and_no_more(limit: int, taken: set[int], unnumbered: int) -> None:
    pool = replace(POOL, limits={NODES: limit})
    numbering = Numbering(pool=pool, taken=frozenset(taken), unnumbered=unnumbered, awaited=0)
    free = numbering.lowest(100)
    assert len(free) == numbering.room(100) == max(0, limit - len(taken) - unnumbered)
    assert set(numbering.highest(100)) == set(free)
