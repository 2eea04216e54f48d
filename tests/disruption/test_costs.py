"""What disturbing a pod costs, as its annotation and its priority say it (DIS-32, DIS-33)."""

from dataclasses import replace

import pytest

from dovetail.disruption.nodes.costs import eviction_cost, reschedule_cost
from worlds.disruption import a_pod

THOUSAND = 1.0 + 1000 / 2.0**27


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("1000", THOUSAND),
        ("1_000", THOUSAND),
        ("1e3", THOUSAND),
        ("+1000.0", THOUSAND),
        ("-134217728", 0.0),
        (" 1000", 1.0),
        ("0x10", 1.0),
        ("1__000", 1.0),
        ("much", 1.0),
        ("inf", 10.0),
        ("-1e300", -10.0),
        ("1_0e0_2", THOUSAND),
        ("0x3e8p0", THOUSAND),
        ("0x7_dp+3", THOUSAND),
        ("0x.fap10", THOUSAND),
        ("0x", 1.0),
        ("0x1p", 1.0),
        ("0x1_p3", 1.0),
        ("1e400", 1.0),  # beyond a float, which only a text that says so may be
        ("-1e400", 1.0),
        ("9" * 400, 1.0),
        ("0x1p5000", 1.0),
        ("-Infinity", -10.0),
    ],
)
def test_a_deletion_cost_is_read_as_go_reads_it(text: str, cost: float) -> None:
    """DIS-32: what cannot be read is ignored."""
    assert eviction_cost(replace(a_pod("n"), deletion_cost=text)) == cost


def test_a_negative_cost_makes_no_node_cheaper_to_disturb() -> None:
    """DIS-33."""
    pods = [replace(a_pod("n"), deletion_cost=text) for text in ("134217728", "-1e300")]

    assert reschedule_cost(pods) == 1.0 + 2.0


@pytest.mark.parametrize(
    ("steering", "deletion", "managed", "cost"),
    [
        ("134217728", "-134217728", False, 2.0),  # comes before the deletion cost
        ("134217728", None, True, 2.0),
        (None, "134217728", True, 1.0),  # with the gate deletion costs are our own
        (None, "134217728", False, 2.0),
        ("much", "134217728", False, 1.0),  # there, and ignored
        ("1e3", "134217728", False, 1.0),
        ("2147483648", None, False, 1.0),  # beyond an int32
        ("-2147483648", None, False, -10.0),
        ("9" * 400, None, False, 1.0),
        ("\u0661", None, False, 1.0),
    ],
)
def test_a_disruption_cost_comes_before_the_deletion_cost(
    steering: str | None, deletion: str | None, managed: bool, cost: float
) -> None:
    """DIS-32, of Karpenter 1.15: read as Go's ParseInt reads an int32."""
    assert eviction_cost(replace(a_pod("n"), disruption_cost=steering, deletion_cost=deletion), managed) == cost
