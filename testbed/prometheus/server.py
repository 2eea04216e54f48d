"""A Prometheus that scrapes workers of this machine, with the alerts loaded, and answers questions.

It listens on loopback only and keeps what it has scraped in its folder until it is stopped.
"""

import json
import math
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from dovetail.cli.demo.temporal_server import free_ports, stop_process
from dovetail.model.values.json import Json
from testbed.plane.unavailable import TestbedUnavailable

SCRAPE_SECONDS: Final = 5
START_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 30.0

# One series as Prometheus answers it: its labels, and its values by moment.
Series = tuple[Mapping[str, str], list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus."""

    port: int
    pid: int

    def now(self, expression: str) -> list[Series]:
        """The expression's current value."""
        found = self._ask("query", query=expression)["result"]
        return [(each["metric"], [_point(each["value"])]) for each in found]

    def throughout(self, expression: str, since: float) -> list[Series]:
        """The expression's values at each scrape since then, and finally now, so that the newest data counts too."""
        now = time.time()
        start = now - math.ceil((now - since) / SCRAPE_SECONDS) * SCRAPE_SECONDS
        asked = {"query": expression, "start": start, "end": now, "step": SCRAPE_SECONDS}
        found = self._ask("query_range", **asked)["result"]
        return [(each["metric"], [*map(_point, each["values"])]) for each in found]

    def selectors(self, expression: str) -> list[str]:
        """The series that the expression asks for, each as a query of its own."""
        return [*_selectors(self._ask("parse_query", query=expression))]

    def ready(self) -> bool:
        """Whether it answers yet."""
        try:
            self._ask("query", query="1")
        except (OSError, urllib.error.URLError):
            return False
        return True

    def _ask(self, what: str, **words: object) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
            return json.loads(answer.read())["data"]


def _point(given: Sequence[Any]) -> tuple[float, float]:
    return float(given[0]), float(given[1])


def _selectors(node: object) -> Iterator[str]:
    """Found anywhere in the tree of an expression."""
    if isinstance(node, list):
        for each in node:
            yield from _selectors(each)
    elif isinstance(node, dict):
        if node.get("type") in ("vectorSelector", "matrixSelector"):
            matchers = [each for each in node["matchers"] if each["name"] != "__name__"]
            matched = sorted(f"{m['name']}{m['type']}{json.dumps(m['value'])}" for m in matchers)
            yield f"{node['name']}{{{','.join(matched)}}}"
        for each in node.values():
            yield from _selectors(each)


@contextmanager
def scraping(program: Path, folder: Path, targets: Sequence[int], rules: Sequence[Path]) -> Iterator[Prometheus]:
    """One that scrapes those ports of loopback, as the job `karpenter`, as its chart and its dashboards name it."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(_configuration(targets, rules)))
    command = [str(program), f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        found = Prometheus(port, process.pid)
        _await(found, process, folder / "prometheus.log")
        yield found
    finally:
        stop_process(process, signal.SIGTERM)


def _configuration(targets: Sequence[int], rules: Sequence[Path]) -> Json:
    addresses = [f"127.0.0.1:{port}" for port in targets]
    return {
        "global": {
            "scrape_interval": f"{SCRAPE_SECONDS}s",
            "scrape_timeout": f"{SCRAPE_SECONDS}s",
            "evaluation_interval": f"{SCRAPE_SECONDS}s",
        },
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [{"job_name": "karpenter", "static_configs": [{"targets": addresses}]}],
    }


def _await(found: Prometheus, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not found.ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise TestbedUnavailable(f"Prometheus did not start: {log.read_text()[-300:]}")
        time.sleep(0.1)
