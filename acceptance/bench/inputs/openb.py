"""`python -m acceptance.bench.inputs.openb POD_LIST.csv OUT.json.gz`: a public list of pods as an input.

Alibaba's OpenB (`cluster-trace-gpu-v2023`, `openb_pod_list_*.csv`), which its readers fetch themselves. Requests of cpu
and memory are taken as they stand there, GPUs are left out. The types are those of `instance_types_real.json.gz`, which
must lie beside OUT when it is run.
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import orjson

from acceptance.bench.inputs.made import a_pod, a_pool
from dovetail.model.values.json import Json

_FIELDS = ("cpu_milli", "memory_mib", "num_gpu")


class NoPodList(ValueError):
    """A file that is not such a list: which line, which field."""


def document_of(file: Path, first: int | None, without_gpu: bool) -> Json:
    """The input: so many pods from the beginning, or those that ask for no GPU."""
    with file.open(newline="") as lines:
        rows = csv.DictReader(lines)
        missing = [name for name in _FIELDS if name not in (rows.fieldnames or ())]
        if missing:
            raise NoPodList(f"{file}: no column {', '.join(missing)}; it has {', '.join(rows.fieldnames or ())}")
        pods = list(islice(_pods(file, rows, without_gpu), first))
    if not pods:
        raise NoPodList(f"{file}: no pod")
    return {
        "name": file.stem,
        "instanceTypesFile": "instance_types_real.json.gz",
        "input": {"nodePools": [a_pool()], "pods": pods},
    }


def _pods(file: Path, rows: "csv.DictReader[str]", without_gpu: bool) -> Iterator[Json]:
    number = 0
    for row in rows:
        if without_gpu and _whole(file, rows.line_num, row, "num_gpu"):
            continue
        cpu, memory = (_whole(file, rows.line_num, row, field) for field in ("cpu_milli", "memory_mib"))
        yield a_pod(number, f"{cpu}m", f"{memory}Mi", {"kind": "generic"}, {})
        number += 1


def _whole(file: Path, line: int, row: Mapping[str, str | None], field: str) -> int:
    text = row[field] or ""
    if not text.isascii() or not text.isdigit():
        raise NoPodList(f"{file}, line {line}: {field} is no whole number: {text!r}")
    return int(text)


def main(arguments: list[str]) -> int:
    """Write the input that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m acceptance.bench.inputs.openb")
    parser.add_argument("pod_list", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--first", type=int, help="so many pods from the beginning")
    parser.add_argument("--without-gpu", action="store_true", help="the pods that ask for no GPU")
    asked = parser.parse_args(arguments)
    try:
        document = document_of(asked.pod_list, asked.first, asked.without_gpu)
    except (NoPodList, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    asked.out.write_bytes(gzip.compress(orjson.dumps(document), mtime=0))
    print(f"{asked.out}: {len(document['input']['pods'])} pods")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
