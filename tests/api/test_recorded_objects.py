"""Every object that Karpenter wrote or was given in the recordings is one of ours.

Reads the recorded results in tests/recorded.
"""

import gzip
import json
from collections.abc import Iterator
from typing import Any

from dovetail.api.kinds import KINDS
from dovetail.api.validation import InvalidObject, parse
from tests.recorded import MID_FLIGHT, RESULTS, TRAFFIC

FOLDERS = (RESULTS, *TRAFFIC, MID_FLIGHT.parent)
MODELS = {(kind.api_version, kind.kind): kind.model for kind in KINDS}

# Inputs of engines that were called without an API server in between: each breaks the rule that is named here.
NEVER_APPLIED = {
    ("disruption-decisions.jsonl.gz", "spec.disruption.budgets[0].schedule"),
    ("nodeclaim-drift.jsonl.gz", "spec.template.spec.requirements[0].key"),
    ("placement.jsonl.gz", "spec"),
}
# What the API server refused when it was recorded.
REJECTED = {("class-fields.jsonl.gz", "spec.tags")}


def recorded_objects(files: str = "*.jsonl.gz") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every NodePool, NodeClaim, NodeOverlay and EC2NodeClass, with the file that it stands in."""
    for folder in FOLDERS:
        for path in sorted(folder.glob(files)):
            with gzip.open(path, "rt") as lines:
                for line in lines:
                    yield from ((path.name, found) for found in _objects_in(json.loads(line)))


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if (value.get("apiVersion"), value.get("kind")) in MODELS and "spec" in value:
            yield value
        for inner in value.values():
            yield from _objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects_in(inner)


def test_every_recorded_object_is_taken_except_those_that_no_api_server_took() -> None:
    refused: set[tuple[str, str]] = set()
    taken = 0
    for source, found in recorded_objects():
        try:
            parse(MODELS[found["apiVersion"], found["kind"]], found)
            taken += 1
        except InvalidObject as error:
            refused.update((source, field) for field, _ in error.problems)

    assert refused == NEVER_APPLIED | REJECTED
    assert taken > 5000


def test_a_recorded_object_comes_out_as_it_went_in() -> None:
    """Objects that an API server has defaulted lose nothing but metadata that no one here asks for."""
    objects = [found for _, found in recorded_objects(MID_FLIGHT.name)]

    assert objects
    for found in objects:
        written = parse(MODELS[found["apiVersion"], found["kind"]], found).as_object()
        assert (written["spec"], written.get("status")) == (found["spec"], found.get("status"))
