"""`python -m testbed.temporal start --name NAME`: `make temporal`. `python -m testbed.up stop` ends it."""

import argparse
import asyncio
import json
import os
import shlex
import sys

from dovetail.answers.failures import CommandFailed
from testbed.plane import TestbedUnavailable
from testbed.temporal.server import start_temporal
from testbed.up import folder_of, stop


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _command(asked: argparse.Namespace) -> None:
    folder = folder_of(asked.name)
    await stop(folder)
    temporal = await start_temporal(folder, _say)
    _say("    Temporal is up, on PostgreSQL; to use it:")
    _say("    source .venv/bin/activate")
    for name, value in temporal.environment.items():
        _say(f"    export {name}={shlex.quote(value)}")
    _say("    temporal operator cluster health")
    if asked.output == "json":
        print(json.dumps(temporal.report()))


def main() -> int:
    """Parse and run; a part that does not come up is reported in one line."""
    parser = argparse.ArgumentParser(prog="python -m testbed.temporal", description="A Temporal on PostgreSQL.")
    parser.add_argument("command", choices=("start",))
    parser.add_argument("--name", default="default", help="sets of different names run side by side")
    outputs = ("json", "none")
    parser.add_argument("-o", "--output", choices=outputs, default="json", help="none: without the JSON line")
    try:
        asyncio.run(_command(parser.parse_args()))
    except (TestbedUnavailable, CommandFailed, OSError) as error:
        print(f"temporal: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
