"""What a rest says of why a node is left alone."""

from dataclasses import replace

import pytest

from dovetail.disruption.explain import explain_node
from dovetail.disruption.nodes.resting import read_rest, rest_text
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from testing.disruption_worlds import NOW, a_pair, a_pool, a_world


@pytest.mark.parametrize(
    ("cancelled", "says"),
    [
        (True, "A person called its last disruption off, it is looked at again later"),
        (False, "Node's last replacement failed, it is tried again later"),
    ],
)
def test_what_a_person_called_off_is_not_said_to_have_failed(cancelled: bool, says: str) -> None:
    pair = a_pair("n1")
    text = rest_text(pair.claim, NOW, "Drifted", cancelled=cancelled)
    resting = a_pair("n1", claim={"annotations": {names.REST: text}})
    rest = read_rest(resting.claim)

    found = explain_node(
        replace(a_world([resting], pools=[a_pool()]), resting={"n1": rest.until}), DisruptionSettings(), "n1"
    )

    assert (rest.reason, rest.cancelled, rest.until > NOW) == ("Drifted", cancelled, True)
    assert says in [check.message for check in found.checks]
