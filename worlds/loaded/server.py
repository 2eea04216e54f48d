"""`python -m worlds.loaded.server FD`: loads the product, and makes a copy of itself for each order on that socket.

To load a worker takes a second and a half of a processor, a command half of that, and whole systems start some hundred
of them. A copy has its own process id, session, environment and output, and is killed as any other; what it does from
there is what the command does. The interpreter's own threads are not copied, so nothing that starts one may be loaded:
Temporal's SDK starts its own with the first client.

An order is a line of JSON with four files: input, output, errors, and the pipe that is told the process id and, in the
end, how it ended. The server ends when nobody holds the other end of its socket any more.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

LARGEST_ORDER: Final = 1 << 20
FILES: Final = 4
LOADED: Final = (
    "dovetail.cli.main",
    "dovetail.worker.run",
    "dovetail.wiring.world",
    "dovetail.adapters.simulator.play.__main__",
    "dovetail.adapters.aws.adapter",
    "dovetail.adapters.kube.adapter",
    "dovetail.wiring.simulated",
)
# What each command runs, by the words after `python -m`.
ENTRIES: Final = {
    "dovetail.cli.main": ("dovetail.cli.main", "run"),
    "dovetail.adapters.simulator.play": ("dovetail.adapters.simulator.play.__main__", "main"),
    "tests.faults.worker": ("tests.faults.worker", "main"),
}
RUNS: Final = "from dovetail.cli.main import run"  # what a program after `python -c` has that changes the product first


def main() -> None:
    """Load, then serve."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    for module in LOADED:
        importlib.import_module(module)
    if len([*Path("/proc/self/task").iterdir()]) > 1:
        raise RuntimeError("what was loaded has started a thread, which no copy would have")
    gc.collect()
    gc.freeze()  # a copy that collected garbage would write to all the memory that it shares with this process
    serve(orders)


def serve(orders: socket.socket) -> None:
    """Copies to order; each is waited for, and its end reported."""
    waiting = selectors.DefaultSelector()
    waiting.register(orders, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is not orders:
                pid, told = key.data
                waiting.unregister(key.fileobj)
                os.close(key.fd)
                _, status = os.waitpid(pid, 0)
                _tell(told, os.waitstatus_to_exitcode(status))
                os.close(told)
                continue
            text, files, _, _ = socket.recv_fds(orders, LARGEST_ORDER, FILES)
            if not text:
                return
            *standard, told = files
            pid = os.fork()
            if pid == 0:
                run(json.loads(text), standard)
            for file in standard:
                os.close(file)
            _tell(told, pid)
            waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))


def _tell(told: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # who ordered it has gone, and asks no more
        os.write(told, b"%d\n" % number)


def run(order: dict[str, Any], standard: list[int]) -> NoReturn:
    """In the copy: become the process that was ordered."""
    code = 1
    try:
        os.setsid()
        for number, file in enumerate(standard):
            os.dup2(file, number)
        os.closerange(len(standard), 1 << 16)
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        time.tzset()
        if order["how"] == "-c":
            sys.argv = ["-c", *order["arguments"]]
            exec(order["what"], {"__name__": "__main__"})
            code = 0
        else:
            module, function = ENTRIES[order["what"]]
            loaded = importlib.import_module(module)
            sys.argv = [str(loaded.__file__), *order["arguments"]]
            code = getattr(loaded, function)() or 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
