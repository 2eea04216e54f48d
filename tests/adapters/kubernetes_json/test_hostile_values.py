"""Whatever stands in a field, a parser reads the object or sets it aside, and what it has read can be judged.

The values are those that hurt programs: numbers of thousands of digits, enormous powers, deep nesting, other types,
control characters, halves of characters, texts of a megabyte. No clock bounds the work, but what it is about: however
large a text is, a number that comes of it is small.
"""

import math
from collections.abc import Callable, Iterator
from copy import copy
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS, DEVICE_KINDS, NODE_OVERLAY
from dovetail.adapters.kubernetes_json.parsing.class_hashes import canonical_quantity
from dovetail.adapters.kubernetes_json.parsing.errors import UnreadableObject
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.disruption.budgets.budgets import BudgetError, allowed_nodes
from dovetail.disruption.budgets.schedules import ScheduleError, parse_schedule
from dovetail.disruption.nodes.costs import eviction_cost
from dovetail.model.objects.pod_rules import is_drainable, is_evictable, is_reschedulable, protection
from dovetail.model.pods import Pod
from dovetail.model.scheduling.host_ports import canonical_address, first_conflict
from dovetail.model.scheduling.requirements import from_expressions, text_of_set
from dovetail.model.scheduling.taints import Taint, untolerated
from dovetail.model.values import digits
from dovetail.model.values.durations import DurationError, parse_nanoseconds
from dovetail.model.values.resources import (
    MOST,
    NANO,
    QuantityError,
    fits,
    format_resources,
    parse_quantity,
    parse_resources,
    subtract,
    total,
)
from dovetail.model.values.time import time_or_none
from dovetail.notices.decisions import pod_notice
from tests.adapters.kubernetes_json.whole_objects import whole_objects

KINDS: Final = {kind.name: kind for kind in (*CLUSTER_KINDS, *BUFFER_KINDS, *DEVICE_KINDS, NODE_OVERLAY)}
NOW: Final = 1_787_000_000.0
MEGABYTE: Final = 2**20
READ_CLOSELY: Final = frozenset(
    {*whole_objects()["Pod"]["metadata"]["annotations"], "name", "memory", "value", "startTime", "hostIP", "app"}
)  # the texts of a pod that are more than compared


def _nested(make: Callable[[Any], Any], depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = make(value)
    return value


TEXTS: Final = (
    "9" * 5000,
    "-" + "9" * 5000,
    "0" * 5000 + "1",
    "9" * MEGABYTE,
    "0" * MEGABYTE + "x",
    "9" * 5000 + "h",
    "1h" * 60_000,
    "9" * 5000 + "%",
    "1e400",
    "1e99999",
    "1e30000000",
    "1e-30000000",
    "1e" + "9" * 5000,
    "." * 5000,
    "1." + "3" * 5000 + "Gi",
    "9" * 19,
    "٣" * 3,
    "nan",
    "inf",
    "\x00\x1b[31m\n\r\u2028",
    "\ud800",
    "x" * MEGABYTE,
    "2026-99-99T99:99:99Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+23:59",
    "",
)
OTHERS: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    1e308,
    -0.0,
    float("nan"),
    float("inf"),
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": None},
    {"a": {"b": []}},
    ["x"] * 1000,
    {str(number): str(number) for number in range(1000)},
)
DEEP: Final = (_nested(lambda inner: [inner], 300), _nested(lambda inner: {"a": inner}, 300))
VERY_DEEP: Final = (_nested(lambda inner: [inner], 100_000), _nested(lambda inner: {"a": inner}, 100_000))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
HOSTILE: Final = (*TEXTS, *OTHERS, *DEEP)
NUMBERS: Final = range(len(HOSTILE))  # drawn in their place: nobody reads a failure with a megabyte in it


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from _places(part, (*path, key))


def _with(raw: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy along the path; what lies beside it is shared."""
    if not path:
        return value
    changed, (key, *further) = copy(raw), path
    changed[key] = _with(raw[key], tuple(further), value)
    return changed


def _read(kind: Kind, raw: Any) -> Any:
    """What was read; None where the object was set aside."""
    try:
        return kind.parse(raw)
    except UnreadableObject as error:
        assert len(str(error)) < 1500
        assert str(error).isprintable()
        return None


def _judge(pod: Pod) -> None:
    """What decisions ask of a pod by itself."""
    protection(pod, NOW)
    notice = pod_notice(pod, NOW)
    assert notice is None or len(notice.message) < 1000
    eviction_cost(pod)
    assert is_reschedulable(pod) in (True, False)
    assert is_evictable(pod, NOW) in (True, False)
    assert is_drainable(pod, NOW) in (True, False)
    for term in (*pod.shape.required_terms, *pod.shape.preferred_terms):
        text_of_set(from_expressions(term.expressions))
    untolerated([Taint(key="dedicated", effect="NoSchedule", value="9" * 5000)], pod.shape.tolerations)
    first_conflict(pod.shape.host_ports, pod.shape.host_ports)
    assert all(len(text) < 200 for text in format_resources(pod.requests).values())
    fits(total([pod.requests, pod.requests]), subtract({"cpu": 10}, pod.requests))
    assert all(float(amount) == float(amount) for amount in pod.requests.values())


def test_every_kind_is_here_and_every_whole_object_is_read() -> None:
    """So that the properties below begin with what can be read."""
    objects = whole_objects()

    assert objects.keys() == KINDS.keys()
    assert [name for name, raw in objects.items() if _read(KINDS[name], raw) is None] == []
    _judge(parse_pod(objects["Pod"]))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_object_with_a_hostile_value_is_read_or_set_aside(name: str, data: st.DataObject) -> None:
    raw = whole_objects()[name]
    path = data.draw(st.sampled_from(list(_places(raw))))
    number = data.draw(st.sampled_from(NUMBERS) | st.none())

    found = _read(KINDS[name], _with(raw, path, data.draw(json_values) if number is None else HOSTILE[number]))

    if isinstance(found, Pod):
        _judge(found)


@pytest.mark.parametrize("number", [pytest.param(n, marks=[pytest.mark.slow] if n % 4 else []) for n in NUMBERS])
def test_every_place_of_a_pod_may_hold_a_hostile_value(number: int) -> None:
    """The kind that anybody may create, place by place."""
    raw = whole_objects()["Pod"]
    size = len(HOSTILE[number]) if isinstance(HOSTILE[number], str) else 0
    for path in [path for path in _places(raw) if size < MEGABYTE or path[-1] in READ_CLOSELY]:
        found = _read(KINDS["Pod"], _with(raw, path, HOSTILE[number]))
        if found is not None:
            _judge(found)


@pytest.mark.parametrize("value", VERY_DEEP, ids=["list", "object"])
@pytest.mark.parametrize("name", KINDS)
def test_what_is_nested_a_hundred_thousand_deep_is_set_aside_or_not_looked_at(name: str, value: Any) -> None:
    raw = whole_objects()[name]
    for field in [*raw, *(("spec", key) for key in raw.get("spec", ()))]:
        if isinstance(field, tuple):
            _read(KINDS[name], {**raw, "spec": {**raw["spec"], field[1]: value}})
        else:
            _read(KINDS[name], {**raw, field: value})


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=json_values, name=st.sampled_from(list(KINDS)))
@example(raw=None, name="Pod")
@example(raw={"metadata": []}, name="Node")
@example(raw={"metadata": {"name": [], "resourceVersion": "9" * 5000}}, name="Node")
@example(raw={"metadata": {"resourceVersion": float("inf")}}, name="NodePool")
def test_any_json_at_all_is_set_aside_by_the_cache_and_the_next_object_is_read(raw: Any, name: str) -> None:
    cache = Cache(KINDS.values(), report=lambda _: None)

    cache.apply(name, raw, deleted=False)
    cache.apply(name, whole_objects()[name], deleted=False)

    assert "shop/web" in cache.objects(name) or "uid-web" in cache.objects(name)


texts = (
    st.sampled_from([text for text in TEXTS if len(text) < 10_000])
    | st.text(st.characters())
    | st.from_regex(r"\A[+-]?[0-9.]{0,30}[eE]?[+-]?[0-9]{0,12}[KMGi]?\Z")
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=texts)
@example(text=TEXTS[0])
def test_a_text_is_a_number_of_bounded_size_or_an_error_of_its_own_kind(text: str) -> None:
    """Every reader of numbers: what is no number, or too large, is said so, and nothing else is raised."""
    for read, error, most in (
        (parse_quantity, QuantityError, MOST),
        (lambda t: parse_quantity(t, NANO), QuantityError, MOST * NANO),
        (parse_nanoseconds, DurationError, 2**63),
        (lambda t: allowed_nodes(t, 5000), BudgetError, 2**63 * 5000),
        (lambda t: len(str(parse_schedule(t))), ScheduleError, 10_000),
        (lambda t: len(canonical_quantity(t)), QuantityError, 120),
        (lambda t: digits.integer(t) or 0, ArithmeticError, 2**63),
        (lambda t: digits.nearest_integer(t) or 0, ArithmeticError, 2**63),
        (lambda t: time_or_none(t) or 0.0, ArithmeticError, 1e12),
        (lambda t: len(canonical_address(t)), ArithmeticError, 40),
    ):
        try:
            value = read(text)
        except error as fault:
            assert len(str(fault)) < 1000
        else:
            assert abs(value) <= most


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.from_regex(r"\A[+-]?[0-9]{1,25}\Z"))
def test_a_short_number_is_the_one_that_python_reads(text: str) -> None:
    """ParseInt of 64 bits: within them the number, beyond them none, or the nearest."""
    value = int(text)

    assert digits.integer(text) == (value if -(2**63) <= value < 2**63 else None)
    assert digits.nearest_integer(text) == max(-(2**63), min(2**63 - 1, value))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(whole=st.integers(0, 10**20), fraction=st.from_regex(r"\A[0-9]{0,12}\Z"), power=st.integers(-20, 30))
def test_a_quantity_is_its_decimal_rounded_up(whole: int, fraction: str, power: int) -> None:
    """Against exact fractions."""
    exact = Fraction(f"{whole}.{fraction or 0}")
    rounded = math.ceil(exact * Fraction(10) ** power)

    assert parse_quantity(f"{whole}.{fraction}e{power}") == rounded
    assert parse_quantity(f"-{whole}.{fraction}e{power}") == -rounded
    assert parse_resources({"memory": f"{whole}.{fraction}Gi"})["memory"] == min(math.ceil(exact * 2**30), 2**63 - 1)
