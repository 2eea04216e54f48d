"""`python -m testbed.node start --name NAME --nodes 1`: `make node`. `python -m testbed.up stop` ends it."""

import argparse
import asyncio
import json
import sys

from dovetail.answers.failures import CommandFailed
from testbed.node.cluster import MOST, start
from testbed.plane import PlaneError, TestbedUnavailable
from testbed.up import folder_of, stop


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _command(asked: argparse.Namespace) -> None:
    folder = folder_of(asked.name)
    await stop(folder)
    cluster = await start(folder, _say, asked.nodes)
    for line in ("a cluster with real nodes is up; to try Dovetail on it:", *cluster.lines_to_type(), ""):
        _say(f"    {line}")
    if asked.output == "json":
        print(json.dumps(cluster.report()))


def main() -> int:
    """Parse and run; a part that does not come up is reported in one line."""
    parser = argparse.ArgumentParser(prog="python -m testbed.node", description="A cluster with real nodes.")
    parser.add_argument("command", choices=("start",))
    parser.add_argument("--name", default="default", help="sets of different names run side by side")
    parser.add_argument("--nodes", type=int, choices=range(1, MOST + 1), default=1)
    outputs = ("json", "none")
    parser.add_argument("-o", "--output", choices=outputs, default="json", help="none: without the JSON line")
    try:
        asyncio.run(_command(parser.parse_args()))
    except (PlaneError, TestbedUnavailable, CommandFailed, OSError) as error:
        print(f"node: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
