"""`make bench DIR=… OUT=…`: run benchmark inputs and print what they took and how good the answers are.

Each input runs in a process of its own, because upstream's figures were taken so and because peak memory is one figure
per process. A table goes to the terminal, "within … of what is possible" and one JSON line per input follow it, and
with OUT each answer is written in the notation of recorded results. Seconds (and cpu: seconds of the processor, for a
machine that is not idle) are the best of several runs from raw JSON to the answer, on one core, the collector off
during a run as the planner has it.
Under POLICY=cost, "bound" is the cost, over upstream's planned one, after a model of the kube-scheduler has bound the
pods, each nominated to the node meant for it, and those left over ("second round") have further nodes; the lines below
have the same if nobody is nominated, and for the default answer, where nobody is. "over least" is the planned cost over
a bound that no answer goes below (acceptance/least), looked for within LEAST_SECONDS of the processor.
"machine" is what a fixed piece of work took before and after: lower is a faster machine, and figures scale with it.
"""

import argparse
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from acceptance.bench.asked import AskedWrongly, beginning_seconds, cost_settings, least_seconds
from acceptance.bench.inputs import disruption as bench_disruption
from acceptance.bench.inputs import lifecycle, unlike_nodes
from acceptance.bench.inputs.aws import ROWS as AWS
from acceptance.bench.inputs.made import GENERATED
from research.days import NAME as DAY

Line = dict[str, Any]
_COLUMNS = (
    "input",
    "pods",
    "seconds",
    "cpu",
    "upstream",
    "ratio",
    "nodes",
    "refused",
    "cost",
    "over upstream",
    "over least",
    "bound",
    "second round",
    "unnominated",
    "MB",
    "machine",
)
_FIELDS = {"second round": "bound, second round", "unnominated": "bound if nobody is nominated"}


def _inputs(folder: Path) -> list[str]:
    """The names of the documents in a folder; instance-type lists are not documents."""
    names = sorted(f.name.removesuffix(".json.gz") for f in folder.glob("*.json.gz"))
    return [name for name in names if "input" in _peek(folder / f"{name}.json.gz")]


def _peek(file: Path) -> Any:
    document = orjson.loads(gzip.decompress(file.read_bytes()))
    return document if isinstance(document, dict) else {}


def _run(name: str, folder: Path, out: Path | None, repeat: int) -> Line:
    command = [sys.executable, "-m", "acceptance.bench.one", name, str(folder), str(out or ""), str(repeat)]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode:
        return {"input": name, "fault": result.stderr.decode().strip().splitlines()[-1:]}
    line: Line = orjson.loads(result.stdout.splitlines()[-1])
    return line


def _cells(line: Line) -> list[str]:
    cells = []
    for column in _COLUMNS:
        value = line.get(_FIELDS.get(column, column))
        cells.append("–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value))
    return cells


def _print_table(lines: list[Line]) -> None:
    rows = [list(_COLUMNS), *(_cells(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def nearness(line: Line) -> str | None:
    """How near the planned answer is to a bound, or that none was found in time; None where nothing can be bounded."""
    if "no bound" in line:
        return f"{line['input']}: {line['no bound']}"
    over = line.get("over least")
    return None if over is None else f"{line['input']}: within {over - 1:.1%} of what is possible"


def main() -> int:
    """Run everything in the folder, then the inputs that are made."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="inputs whose name contains this")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    try:
        cost_settings(os.environ, lambda _: lambda: True)
        least_seconds(os.environ)
    except AskedWrongly as error:
        print(error, file=sys.stderr)
        return 2
    if not arguments.folder.is_dir():
        print(f"no folder {arguments.folder}", file=sys.stderr)
        return 2
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
    generated = [name for name, _, _ in GENERATED]
    made = [*generated, "generated_simulations", "generated_growth", *AWS, *lifecycle.INPUTS, *bench_disruption.INPUTS]
    made += [unlike_nodes.NAME, DAY]
    chosen = [name for name in [*_inputs(arguments.folder), *made] if arguments.only in name]
    if os.environ.get("POLICY") == "cost" and (seconds := least_seconds(os.environ)):
        most = seconds + beginning_seconds(os.environ)
        print(f"a bound is looked for: at most {most:g} s an input (LEAST_SECONDS={seconds:g})", file=sys.stderr)
    lines = []
    for name in chosen:
        print(f"  {name} …", file=sys.stderr, flush=True)
        lines.append(_run(name, arguments.folder, arguments.out, arguments.repeat))
    _print_table([line for line in lines if "fault" not in line])
    for words in filter(None, map(nearness, lines)):
        print(words)
    for line in lines:
        print(orjson.dumps(line).decode())
    return 1 if any("fault" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
