"""One of several processes that write to one world at once: python -m tests.adapters.simulator.writer FILE NAME COUNT.

Run by the test of concurrency. Each round reads, creates, patches and launches, as the product's steps do; anything but
success ends the process with a traceback.
"""

import sys
import time
from pathlib import Path

from testbed.simulated_world import SimulatedWorld


def main() -> None:
    """Write, and print how long the slowest round took."""
    file, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    world, slowest = SimulatedWorld.open(file), 0.0
    for index in range(count):
        started = time.monotonic()
        node = f"{name}-{index}"
        world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {}})
        world.patch("Node", node, {"metadata": {"labels": {"round": str(index)}}})
        shared = world.get("Node", "shared") or {"metadata": {"labels": {}}}
        world.patch("Node", "shared", {"metadata": {"labels": {name: str(len(shared["metadata"]["labels"]))}}})
        slowest = max(slowest, time.monotonic() - started)
    world.close()
    print(f"{slowest:.3f}")


if __name__ == "__main__":
    main()
