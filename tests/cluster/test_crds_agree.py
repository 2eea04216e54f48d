"""The models and the API server agree on manifests that no person wrote.

Manifests of the tables of tests/api, each with one or two places overwritten by something odd; a fixed seed makes a
failure come back. Two odd things are left out because they agree on purpose or never: a whole number written 1.0 (the
server takes it for some fields and refuses it for others) and a list where a date-time belongs (the server takes it).
"""

import asyncio
import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.api.validation import InvalidObject, parse
from testbed.plane import ApiClient
from tests.api.all_cases import CASES
from tests.api.manifests import Manifest
from tests.cluster.serving_kinds import BY_KIND, dry_run, server

__all__ = ["server"]
pytestmark = pytest.mark.cluster

HOW_MANY = 2000
AT_ONCE = 50
WORDS = ["", "x", "5", "+5", "1e3", "Never", "0s", "spot", " ", "a\n", "é", "٣", "a" * 70]
NUMBERS = [0, -1, 1.5, 2**31, 2**63, 10**20]
SHAPES: list[Any] = [None, True, False, {}, [], [None], [{}], [1], [["a"]], {"a": None}, {"a": 1}]
ODD = [*WORDS, *NUMBERS, *SHAPES]

DATE_TIMES = ("timeAdded", "until")

Place = tuple[str | int, ...]


def _places(value: Any, way: Place = ()) -> Iterator[Place]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in entries:
        if step not in DATE_TIMES and (*way, step) != ("from",):  # that of a Freeze
            yield (*way, step)
        yield from _places(inner, (*way, step))


def _overwritten(manifest: Manifest, chance: random.Random) -> Manifest:
    result = copy.deepcopy(manifest)
    for _ in range(chance.choice((1, 1, 2))):
        *way, last = chance.choice([("spec",), *(("spec", *place) for place in _places(result["spec"]))])
        holder: Any = result
        for step in way:
            holder = holder[step]
        holder[last] = copy.deepcopy(chance.choice(ODD))
    return result


def _is_ours(manifest: Manifest) -> bool:
    try:
        parse(BY_KIND[manifest["kind"]].model, manifest)
    except InvalidObject:
        return False
    return True


async def _disagreement(server: ApiClient, manifest: Manifest) -> str:
    model = BY_KIND[manifest["kind"]].model
    ours = parse(model, manifest).as_object()["spec"] if _is_ours(manifest) else "refused"
    answer = await dry_run(server, manifest)
    theirs = answer.body["spec"] if answer.status == 201 else "refused"
    return "" if ours == theirs else f"{manifest}: we say {ours}, the API server {theirs}: {answer.text}"


async def test_the_models_and_the_api_server_agree_on_odd_manifests(server: ApiClient) -> None:
    chance = random.Random(20260820)
    good = [case.manifest for case in CASES if not case.refusal]
    manifests = [_overwritten(chance.choice(good), chance) for _ in range(HOW_MANY)]
    taken = sum(1 for manifest in manifests if _is_ours(manifest))
    found: list[str] = []

    for start in range(0, HOW_MANY, AT_ONCE):
        batch = manifests[start : start + AT_ONCE]
        found += await asyncio.gather(*(_disagreement(server, manifest) for manifest in batch))

    assert [text for text in found if text] == []
    assert HOW_MANY / 20 < taken < HOW_MANY  # else one of the two answers was hardly asked for
