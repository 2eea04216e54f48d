"""Recorded results of price order, launch prices, price adjustments and minimum values."""

import math
from typing import Any

from acceptance.vectors.kind_algebra import first_difference
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_expressions
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.scheduling.requirements import from_expressions, from_labels
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.prices import adjusted_price, cheapest, price_order, worst_launch_price

Case = dict[str, Any]


def compare_price_order(case: Case) -> str | None:
    """Indexes by price (PLC-126)."""
    return first_difference({"order": price_order(case["input"]["prices"])}, case["expected"])


def compare_price_adjustment(case: Case) -> str | None:
    """Price strings of node overlays (PLC-138)."""
    ours = adjusted_price(case["input"]["price"], case["input"]["change"])
    recorded = case["expected"]["price"]
    return None if math.isclose(ours, recorded, rel_tol=1e-15) else f"ours {ours!r}, recorded {recorded!r}"


def compare_min_values(case: Case) -> str | None:
    """Minimum values over an ordered list of types (PLC-122)."""
    types = [from_expressions(parse_expressions(raw)) for raw in case["input"]["instanceTypes"]]
    needed, short = shortest_prefix(types, from_expressions(parse_expressions(case["input"]["requirements"])))
    return first_difference({"needed": needed, "ok": not short, "unsatisfiable": short or None}, case["expected"])


def compare_worst_launch_price(case: Case) -> str | None:
    """Cheapest and worst launch price (PLC-126, PLC-127); -1 stands for infinity."""
    offerings = [
        (from_labels(raw["requirements"]), raw["price"])
        for raw in case["input"]["offerings"]
        if raw.get("available", True)
    ]
    wanted = from_expressions(parse_expressions(case["input"]["requirements"]))
    found = {
        "cheapest": cheapest(offerings, wanted, WELL_KNOWN_LABELS),
        "worst": worst_launch_price(offerings, wanted, WELL_KNOWN_LABELS),
    }
    return first_difference({k: -1 if math.isinf(v) else v for k, v in found.items()}, case["expected"])


KINDS = {
    "price_order": compare_price_order,
    "price_adjustment": compare_price_adjustment,
    "min_values": compare_min_values,
    "worst_launch_price": compare_worst_launch_price,
}
