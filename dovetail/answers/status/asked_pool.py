"""`--pool` of `status` and `nodes`: the part of an answer that concerns one NodePool."""

from collections.abc import Iterable

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document

_SUMS = ("price", "cpu", "memory", "pods", "pendingPods", "unpriced", "spot")


def check_pool(pool: str, known: Iterable[str]) -> None:
    """Refuse a name that is not that of a NodePool of ours."""
    found = sorted(known)
    if pool not in found:
        words = ", ".join(found) or "none"
        raise CommandFailed(f"--pool {pool}: there is no such NodePool of ours; there is {words}")


def status_of_pool(found: Document, pool: str) -> Document:
    """The status of that NodePool: its totals, what moves there, and what needs a person."""
    check_pool(pool, (each["name"] for each in found["pools"]))
    pools = [each for each in found["pools"] if each["name"] == pool]
    return {
        **found,
        "pool": pool,
        "totals": _totals(found, pools[0]),
        "pools": pools,
        "underWay": [move for move in found["underWay"] if move["pool"] == pool],
        "rollouts": [each for each in found.get("rollouts", ()) if each["pool"] in ("", pool)],
        "needsPerson": [need for need in found["needsPerson"] if need.get("pool", pool) == pool],
    }


def _totals(found: Document, pool: Document) -> Document:
    sums = {name: pool[name] for name in _SUMS}
    return {**found["totals"], "nodes": pool["nodes"], "claims": pool["nodes"], "notOurs": 0, **sums}
