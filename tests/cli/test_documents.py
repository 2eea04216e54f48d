"""From a document back to the answer that it was made of, also where a worker of another version has made it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document, document, read_document
from dovetail.answers.status.answer import ClusterStatus, NodesAnswer, PoolStatus, Use
from tests.cli.fleet import a_fleet
from tests.cli.test_status_text import NOW, a_status


def sent(found: Document) -> Document:
    """As it comes over the API."""
    again: Document = json.loads(json.dumps(found))
    return again


@pytest.mark.parametrize(
    ("kind", "found"), [(ClusterStatus, a_status()), (NodesAnswer, a_fleet(60))], ids=("status", "nodes")
)
def test_what_is_read_makes_the_same_document_again(kind: type, found: Document) -> None:
    answer: object = read_document(kind, sent(found))

    assert {**found, **document(found["kind"], found["cluster"], answer)} == found


def test_moments_are_seconds_and_lists_are_records() -> None:
    answer = read_document(ClusterStatus, sent(a_status()))

    assert (answer.now, answer.under_way[0].due, answer.under_way[1].due) == (NOW, NOW + 9, None)
    assert answer.pools[0].cpu == Use(used=78.0, room=100.0) and answer.pools[0].may_go[0].allowed == 12
    assert (answer.cluster, answer.workers) == ("prod-eu1", 2)


def test_fields_of_a_newer_worker_are_passed_over_at_every_depth() -> None:
    def with_more(found: Any) -> Any:
        if isinstance(found, dict):
            return {"ofTomorrow": {"deep": [1]}, **{key: with_more(each) for key, each in found.items()}}
        return [with_more(each) for each in found] if isinstance(found, list) else found

    assert read_document(ClusterStatus, with_more(sent(a_status()))) == read_document(ClusterStatus, sent(a_status()))


def test_a_field_that_an_older_worker_does_not_know_has_its_default() -> None:
    old = sent(a_status())
    pool = old["pools"][0]
    whole = read_document(PoolStatus, pool)
    del pool["pods"], pool["nextDue"], old["workers"]

    assert read_document(PoolStatus, pool) == replace(whole, pods=0, next_due=None)
    assert read_document(ClusterStatus, old).workers is None


def test_a_field_that_has_no_default_is_named_where_it_is_missing() -> None:
    found = sent(a_status())
    del found["pools"][0]["price"]

    with pytest.raises(CommandFailed, match=r"the answer cannot be read: its PoolStatus has no price"):
        read_document(ClusterStatus, found)
