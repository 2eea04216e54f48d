"""python -m dovetail.adapters.simulator.play FILE: moves the world in that file until it is stopped.

Started by `make demo`, by `make up` and by tests. With --with-parent it ends when the process that started it does, so
that a killed demo leaves nothing behind; --parent names that process, in case it ends before its id can be read.
"""

import argparse
import dataclasses
import os
import signal
import sys
import threading
from pathlib import Path

from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.play.player import Player
from dovetail.adapters.simulator.settings import read_settings, write_settings

_ENDS = (signal.SIGTERM, signal.SIGINT)
_PARENT_SECONDS = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m dovetail.adapters.simulator.play", description=__doc__.splitlines()[0]
    )
    parser.add_argument("file", type=Path, help="the world; made by SimulatedWorld.create")
    parser.add_argument("--speed", type=float, help="divide every delay by this")
    parser.add_argument("--boot", type=float, help="seconds from a launch to the kubelet's registration")
    parser.add_argument(
        "--with-parent", action="store_const", dest="parent", const=os.getppid(), help="end with the parent"
    )
    parser.add_argument("--parent", type=int, help="the process that starts this one; end when it ends")
    asked = parser.parse_args()
    if not asked.file.exists():
        print(f"there is no world in {asked.file}", file=sys.stderr)
        return 2
    store, stop = Store(asked.file), set_at_end()
    _set_speed(store, asked)
    if asked.parent:
        threading.Thread(target=_follow_parent, args=(asked.parent, stop), daemon=True).start()
    Player(store).run(stop)
    store.close()
    return 0


def set_at_end() -> threading.Event:
    """What SIGTERM and SIGINT set, from a thread of its own, called before any other thread is there.

    A handler runs in the main thread, between any two of its instructions: inside Event.wait it would wait for the lock
    that this very thread holds, and the process would never end.
    """
    stop = threading.Event()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # threads inherit it

    def follow() -> None:
        signal.sigwait(_ENDS)
        stop.set()

    threading.Thread(target=follow, daemon=True).start()
    return stop


def _set_speed(store: Store, asked: argparse.Namespace) -> None:
    wanted = {name: value for name in ("speed", "boot") if (value := getattr(asked, name)) is not None}
    with store.writing() as connection:
        write_settings(connection, dataclasses.replace(read_settings(connection), **wanted))


def _follow_parent(parent: int, stop: threading.Event) -> None:
    while os.getppid() == parent and not stop.wait(_PARENT_SECONDS):
        pass
    stop.set()


if __name__ == "__main__":
    sys.exit(main())
