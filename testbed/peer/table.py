"""The page that says how each spec ended (docs/peer.md), and whether all is well."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed.peer.specs import Outcome

_REASONS: Final = Path(__file__).parent / "reasons.toml"
_HEAD: Final = """\
# Karpenter's own suites

`make peer` compiles Karpenter's end-to-end suites from their Go module ({module}, pinned in `testbed/go/peer`) and runs
them, unchanged, against a Dovetail worker whose cloud is kwok, on real control planes of the test bed.
[Decision 223](decisions/0223-the-peers-suites.md) says what is played for them. This page is written by that command;
`make peer ONLY="Drift Budgets"` runs some of it again.

{sum}

| suite | spec | result | day |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why what is not run cannot apply."""

    suites: Mapping[str, str]
    specs: Mapping[str, str]

    @classmethod
    def read(cls) -> "Reasons":
        """Those of this folder."""
        said = tomllib.loads(_REASONS.read_text())
        return cls(suites=said["suites"], specs=said["specs"])


def page(module: str, specs: Sequence[str], outcomes: Mapping[str, Outcome], reasons: Reasons) -> str:
    """The page; a spec that has neither an outcome nor a reason has not been run yet."""
    rows = [
        f"| regression | {_cell(spec)} | {_result(spec, outcomes, reasons)} | {_day(spec, outcomes, reasons)} |"
        for spec in specs
    ]
    rows += [f"| {name} | all | not applicable: {_cell(why)} | – |" for name, why in sorted(reasons.suites.items())]
    results = [_result(spec, outcomes, reasons).partition(":")[0] for spec in specs]
    ends = ("passed", "failed", "not applicable", "not run")
    counted = ", ".join(f"{results.count(end)} {end}" for end in ends if end in results)
    total = f"Of the {len(specs)} specs of its regression suite: {counted}."
    return _HEAD.format(module=module, sum=total) + "\n".join(rows) + "\n"


def _result(spec: str, outcomes: Mapping[str, Outcome], reasons: Reasons) -> str:
    if spec in reasons.specs:
        return f"not applicable: {_cell(reasons.specs[spec])}"
    found = outcomes.get(spec)
    if found is None:
        return "not run"
    return "passed" if found.passed else f"failed: {_cell(found.why)}"


def _day(spec: str, outcomes: Mapping[str, Outcome], reasons: Reasons) -> str:
    return outcomes[spec].day if spec in outcomes and spec not in reasons.specs else "–"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
