"""The page of screens: what commands print at three widths, as tests hold them line by line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

CAPTURES: Final = Path(__file__).parents[3] / "tests" / "cli" / "golden"
WIDTHS: Final = (80, 120, 200)
NODE: Final = "ip-10-0-3-40.eu-west-1.compute.internal"
# What is typed, by the name of its captures. The first three are of clusters made up for them, the others of one.
FLEETS: Final = ("status", "nodes", "top")
TYPED: Final[Mapping[str, str]] = {
    **{name: name for name in FLEETS},
    "explain-node": f"explain node {NODE}",
    "explain-node-at": f"explain node {NODE} --at 3h",
    "explain-pod": "explain pod default/search-0",
    "explain-pod-refused": "explain pod default/zonal",
    "plan": "plan",
    "plan-file": "plan -f change.yaml",
    "plan-diff": "plan -f change.yaml --diff",
    "plan-markdown": "plan -f change.yaml -o markdown",
    "forecast": "forecast --for 7d",
    "log": "log --since 12h",
    "savings": "savings --since 30d",
    "savings-by-namespace": "savings --since 30d --by namespace",
    "history": f"history {NODE}",
    "replay": "replay",
    "replay-one": "replay 2026-05-28T17-26-40.000Z_disruption",
    "shadow-report": "shadow report",
    "doctor": "doctor",
    "doctor-away": "doctor --local",
    "doctor-preflight": "doctor --preflight",
    "version": "version",
    "cancel": f'cancel {NODE} --reason "not now"',
    "replace": f'replace {NODE} --reason "a noisy neighbour"',
    "replace-now": f'replace {NODE} --now --reason "a noisy neighbour"',
    "decide": f"decide {NODE} wait 6h",
    "rollout": "rollout",
    "pause": 'pause --pool default --for 2h --reason "a release"',
    "resume": "resume --pool default",
    "snapshot": "snapshot prod.json.gz",
    "take-over": "take-over --from 1b2e9a40-77c1-4a0e-bd1e-6f9d2c8e5a03",
    "completion": "completion bash",
}
# What the cluster of a capture is like, where it is unlike the others'.
OF_ITS_OWN: Final = {"doctor-away": ", Temporal away"}


def screens_page() -> str:
    """Every capture."""
    return "\n".join(["# Screens", "", _HEAD, *(line for name in TYPED for line in _captures(name))])


_HEAD: Final = (
    "What is printed at 80, 120 and 200 columns, of made-up clusters: columns that matter least are left out first,\n"
    "no row is wrapped. Colours, which mean state and nothing else, are not shown. `top` is of 5,000 nodes. What is\n"
    "the same at every width stands once."
)


def _captures(name: str) -> Iterator[str]:
    """At each width, or once."""
    texts = {width: _capture(name, width) for width in WIDTHS}
    own = OF_ITS_OWN.get(name, "")
    if len(set(texts.values())) == 1:
        yield _part(TYPED[name], own, texts[WIDTHS[0]])
        return
    yield from (_part(TYPED[name], f"{own}, {width} columns", text) for width, text in texts.items())


def _capture(name: str, width: int) -> str:
    return (CAPTURES / f"{name}-{width}.txt").read_text(encoding="utf-8").rstrip("\n")


def _part(typed: str, where: str, text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"\n## `dovetail {typed}`{where}\n\n{fence}text\n{text}\n{fence}"
