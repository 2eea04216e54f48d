"""One join of nodes and claims, and one answer where two claims name one instance."""

from dataclasses import replace

import pytest

from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.pool_usage import pool_usage
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pairing import Pairing
from dovetail.model.values.resources import NODES
from dovetail.placement.facts.cluster_nodes import cluster_nodes
from worlds.disruption import NOW, Pair, a_pair, a_world


def a_double(pair: Pair, **changes: object) -> NodeClaim:
    """Another claim that names the pair's instance."""
    return replace(pair.claim, **{"name": "another", "uid": "another", **changes})  # type: ignore[arg-type]


def the_pairing(pair: Pair, *claims: NodeClaim) -> Pairing:
    return Pairing([pair.node], claims)


@pytest.mark.parametrize("reverse", [False, True])
def test_of_two_claims_of_one_instance_the_oldest_is_the_nodes(reverse: bool) -> None:
    pair = a_pair("n1")
    younger = a_double(pair, created=pair.claim.created + 1)
    claims = [pair.claim, younger]

    pairing = the_pairing(pair, *(reversed(claims) if reverse else claims))

    assert pairing.claim_of(pair.node) == pair.claim
    assert (pairing.node_of(pair.claim), pairing.node_of(younger)) == (pair.node, None)
    assert pairing.claims_of(pair.node) == (pair.claim, younger)
    assert pairing.claims_awaiting_node() == []


def test_of_two_equally_old_claims_the_first_by_name_is_the_nodes() -> None:
    pair = a_pair("n1")
    assert the_pairing(pair, pair.claim, a_double(pair)).claim_of(pair.node) == a_double(pair)


def test_of_two_nodes_of_one_instance_the_oldest_is_the_claims() -> None:
    pair = a_pair("n1")
    younger = replace(pair.node, name="a-later-name", created=pair.node.created + 1)

    pairing = Pairing([younger, pair.node], [pair.claim])

    assert pairing.node_of(pair.claim) == pair.node
    assert (pairing.claim_of(pair.node), pairing.claim_of(younger)) == (pair.claim, None)
    assert pairing.claims_of(younger) == (pair.claim,)
    assert pairing.nodes_of(pair.claim) == (pair.node, younger)


def test_objects_without_an_instance_meet_nothing() -> None:
    pair = a_pair("n1")
    node, claim = replace(pair.node, provider_id=""), replace(pair.claim, provider_id="")

    pairing = Pairing([node], [claim])

    assert (pairing.claim_of(node), pairing.node_of(claim)) == (None, None)
    assert (pairing.claims_of(node), pairing.nodes_of(claim)) == ((), ())
    assert pairing.claims_awaiting_node() == []


def test_everything_that_joins_gives_the_same_answer_for_two_claims_of_one_instance() -> None:
    pair = a_pair("n1")
    younger = a_double(pair, created=NOW)
    world = a_world([pair])
    for claims in (
        {pair.claim.name: pair.claim, "another": younger},
        {"another": younger, pair.claim.name: pair.claim},
    ):
        doubled = replace(world, claims=claims)
        members = {member.name: member.claim for member in Fleet(doubled, DisruptionSettings()).members}
        assert members == {"n1": pair.claim, "another": younger}
        assert [(found.node_name, found.claim) for found in cluster_nodes(doubled)] == [("n1", pair.claim)]
        assert pool_usage(doubled)["a"][NODES] == 2
