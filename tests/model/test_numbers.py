"""Numbers in texts: quantities as Kubernetes reads them, durations and integers as Go does (PLC-34, PLC-77, DIS-41)."""

import pytest

from dovetail.model.pods import Toleration
from dovetail.model.scheduling.requirements import passes, requirement
from dovetail.model.scheduling.taints import Taint, tolerates
from dovetail.model.values.durations import DurationError, parse_nanoseconds
from dovetail.model.values.resources import (
    MOST,
    NANO,
    QuantityError,
    format_amount,
    parse_amount,
    parse_quantity,
    parse_resources,
    shared_resources,
)

LARGEST = 2**63 - 1
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8Ei", LARGEST),  # binary suffixes are cut to 64 bits
        ("-8Ei", -LARGEST),
        ("9223372036854775807", LARGEST),
        ("9223372036854775808", LARGEST + 1),  # and others are not
        ("9e18", 9 * 10**18),
        ("-1m", -1),  # rounded away from zero
        ("0.0000000001", 1),
        ("1.5Gi", 3 * 2**29),
        ("1.", 1),
        (".5", 1),
        ("+1k", 1000),
        ("1E", 10**18),
        ("1E3", 1000),
        (".", 0),  # what has no digit at all is nothing
        ("Ki", 0),
        ("-", 0),
        ("1e4294967297", 10),  # the power is kept in 32 bits
        ("1e99", 10**99),
        ("1e400", MOST),
        ("-1e400", -MOST),
        ("1e30000000", MOST),
        ("1e-30000000", 1),
        (DIGITS, MOST),
        (f"{DIGITS}Ei", LARGEST),
        (f"{DIGITS}e-4999", 10),
        (f"0.{'0' * 5000}1", 1),
        (f"{'0' * 5000}7", 7),
    ],
    ids=lambda value: str(value)[:24] if isinstance(value, str) else "",
)
def test_a_quantity_is_what_kubernetes_reads(text: str, value: int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1\n", "1K", "1e", "e", "1ee3", "Ei", "e-10", "1e9223372036854775808", "--1", "0x1", "٣"]
)
def test_what_kubernetes_does_not_read_is_no_quantity(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_in_json_spaces_around_a_quantity_do_not_count_and_null_is_nothing() -> None:
    """PLC-77."""
    assert parse_resources({"cpu": " 1", "memory": "1Ki\n", "pods": None}) == {"cpu": NANO, "memory": 1024, "pods": 0}
    assert shared_resources({"cpu": "1 ", "pods": None}) == {"cpu": NANO, "pods": 0}


@pytest.mark.parametrize("text", ["8Ei", "1e99999", "-1e99999", DIGITS, "1n", "1e98"])
def test_an_amount_is_written_briefly_and_reads_back_the_same(text: str) -> None:
    for resource in ("cpu", "memory"):
        amount = parse_amount(resource, text)
        written = format_amount(resource, amount)

        assert len(written) < 120
        assert parse_amount(resource, written) == amount


def test_the_largest_amounts_may_be_summed_and_are_still_floats() -> None:
    assert float(parse_amount("cpu", "1e30000000") * 10**6) == pytest.approx(1e100 * NANO * 10**6)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("-1h", -3600 * NANO),
        ("1.5h", 5400 * NANO),
        (f"1.{'9' * 900}s", 2 * NANO - 1),
        (f"{'0' * 900}1s", NANO),
        ("9223372036854775807ns", LARGEST),
        ("-9223372036854775808ns", -LARGEST - 1),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_duration_is_what_go_reads(text: str, nanoseconds: int) -> None:
    assert parse_nanoseconds(text) == nanoseconds


@pytest.mark.parametrize("text", [f"{DIGITS}h", "9223372036854775808ns", "1h" * 60_000, "3000000h"])
def test_a_duration_beyond_64_bits_or_beyond_all_length_is_invalid(text: str) -> None:
    with pytest.raises(DurationError, match=r"^time: invalid duration ") as caught:
        parse_nanoseconds(text)

    assert len(str(caught.value)) < 200


def test_bounds_of_thousands_of_digits_are_the_nearest_that_64_bits_hold() -> None:
    """PLC-34: so that no label is above the one, and every label above the other."""
    five = requirement("cores", "In", ("5",))

    assert not passes(requirement("cores", "Gt", (DIGITS,)), five)
    assert passes(requirement("cores", "Gt", (f"-{DIGITS}",)), five)
    assert passes(requirement("cores", "Lt", (DIGITS,)), five)
    assert not passes(requirement("cores", "Gt", ("1",)), requirement("cores", "In", (DIGITS,)))


def test_a_taint_or_toleration_of_thousands_of_digits_compares_with_nothing() -> None:
    taint = Taint(key="cores", value=DIGITS, effect="NoSchedule")

    assert not tolerates(Toleration(key="cores", operator="Gt", value="1"), taint)
    assert not tolerates(Toleration(key="cores", operator="Lt", value=DIGITS), Taint(key="cores", value="1", effect=""))
