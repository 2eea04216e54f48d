"""`python -m deploy.release.guide GUIDE --node IMAGE`: types a guide's commands on kind, with that image of a node.

Steps 1 to 5 in their order, each with what must be true before the next is typed. It needs no package but Python's own.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 600.0
STEPS: Final = (1, 2, 3, 4, 5)
PODS: Final = 6


def commands(guide: str, step: int) -> list[str]:
    """What is typed in that step."""
    section = guide.partition(f"\n## {step}. ")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines() if line]


def with_node(command: str, image: str) -> str:
    """The cluster is made of the Kubernetes that is asked for."""
    return f"{command} --image {image}" if command.startswith("kind create cluster") and image else command


def typed(command: str) -> None:
    """One that fails ends everything."""
    print(f"$ {command}", flush=True)
    subprocess.run(["/bin/bash", "-c", command], check=True)


def items(kind: str) -> list[dict[str, Any]]:
    """The objects of that kind, of all namespaces."""
    said = subprocess.run(
        ["kubectl", "get", kind, "--all-namespaces", "-o", "json"], check=True, capture_output=True, text=True
    )
    found: list[dict[str, Any]] = json.loads(said.stdout)["items"]
    return found


def settled() -> bool:
    """The guide's pods run on nodes that claims brought, nothing is under way, and the workers are ready."""
    pods = [pod for pod in items("pods") if pod["metadata"].get("labels", {}).get("app") == "web"]
    claims = items("nodeclaims")
    nodes = {claim.get("status", {}).get("nodeName") for claim in claims}
    marked = any(map(_is_marked, claims))
    running = [pod for pod in pods if pod["status"]["phase"] == "Running" and pod["spec"].get("nodeName") in nodes]
    return len(running) == len(pods) == PODS and not marked and not any(map(_leaves, claims))


def _is_marked(claim: dict[str, Any]) -> bool:
    conditions = claim.get("status", {}).get("conditions", [])
    return any(each["type"] == "DisruptionReason" and each["status"] == "True" for each in conditions)


def _leaves(claim: dict[str, Any]) -> bool:
    return "deletionTimestamp" in claim["metadata"]


def main() -> int:
    """Type all of it."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release.guide")
    parser.add_argument("guide", type=Path)
    parser.add_argument("--node", default="", help="the image of kind's node, for a Kubernetes of one's choice")
    given = parser.parse_args()
    guide = given.guide.read_text()
    for step in STEPS:
        for command in commands(guide, step):
            typed(with_node(command, given.node))
        if step == 2:
            typed(f"kubectl --namespace dovetail rollout status deployment --timeout={SECONDS:.0f}s")
        if step < 3:
            continue
        deadline = time.monotonic() + SECONDS
        while not settled():
            if time.monotonic() > deadline:
                print(f"step {step}: the pods do not run after {SECONDS:.0f} s", file=sys.stderr)
                return 1
            time.sleep(2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
