"""The page with each spec's latest outcome (docs/peer.md): written here, and read again for specs not rerun."""

import re
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

| suite | spec | result | day | seconds |
|---|---|---|---|---|
"""
_ROW: Final = re.compile(r"\| regression \| (.+) \| (passed|failed: .*) \| (\S+) \| (\S+) \|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why the specs that are not run cannot apply."""

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
        f"| regression | {_cell(spec)} | {_result(spec, outcomes, reasons)} | {_when(spec, outcomes, reasons)} |"
        for spec in specs
    ]
    rows += [f"| {name} | all | not applicable: {_cell(why)} | – | – |" for name, why in sorted(reasons.suites.items())]
    results = [_result(spec, outcomes, reasons).partition(":")[0] for spec in specs]
    ends = ("passed", "failed", "not applicable", "not run")
    counted = ", ".join(f"{results.count(end)} {end}" for end in ends if end in results)
    total = f"Of the {len(specs)} specs of its regression suite: {counted}."
    return _HEAD.format(module=module, sum=total) + "\n".join(rows) + "\n"


def outcomes_of(text: str) -> dict[str, Outcome]:
    """The outcomes on such a page, by spec."""
    found = dict[str, Outcome]()
    for line in text.splitlines():
        if row := _ROW.fullmatch(line):
            spec, result, day, seconds = (_said(cell) for cell in row.groups())
            found[spec] = Outcome(
                spec=spec,
                passed=result == "passed",
                seconds=int(seconds) if seconds.isdigit() else None,
                day=day,
                why=result.partition(": ")[2],
            )
    return found


def _result(spec: str, outcomes: Mapping[str, Outcome], reasons: Reasons) -> str:
    if spec in reasons.specs:
        return f"not applicable: {_cell(reasons.specs[spec])}"
    found = outcomes.get(spec)
    if found is None:
        return "not run"
    return "passed" if found.passed else f"failed: {_cell(found.why)}"


def _when(spec: str, outcomes: Mapping[str, Outcome], reasons: Reasons) -> str:
    """Its day and duration, without the wait for its servers."""
    if spec not in outcomes or spec in reasons.specs:
        return "– | –"
    found = outcomes[spec]
    return f"{found.day} | {'–' if found.seconds is None else found.seconds}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _said(cell: str) -> str:
    return cell.replace("\\|", "|").replace("&lt;", "<")
