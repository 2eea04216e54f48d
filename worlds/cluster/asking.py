"""`python -m worlds.cluster.asking HOST`: a client that asks twenty times a second, with a new connection each.

When it is told to stop, it says in a line of JSON how often it asked and what was lost: requests that were refused, cut
off, answered with an error, or not answered within ten seconds. It imports little: what it measures must not be itself.
"""

import asyncio
import json
import signal
import sys
import time
from typing import Final

EVERY_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 10.0
_GOOD: Final = b"HTTP/1.0 200 OK\r\n"


async def asked(host: str) -> dict[str, object]:
    """Until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    sent, lost, by = 0, list[str](), dict[str, int]()
    under_way: set[asyncio.Task[None]] = set()

    async def ask() -> None:
        began = time.time()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await _answer(host)
        except (OSError, TimeoutError) as error:
            answer = repr(error).encode()
        if answer.startswith(_GOOD):
            who = answer.rpartition(b"\r\n")[2].decode().strip()
            by[who] = by.get(who, 0) + 1
        else:
            when = time.strftime("%T", time.gmtime(began))
            lost.append(f"{when} after {time.time() - began:.1f} s: {answer[:80].decode(errors='replace')}")

    while not stopped.is_set():
        task = asyncio.create_task(ask())
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        sent += 1
        await asyncio.sleep(EVERY_SECONDS)
    await asyncio.gather(*under_way)
    return {"sent": sent, "lost": lost, "by": by}


async def _answer(host: str) -> bytes:
    """All that comes until the other side closes."""
    reader, writer = await asyncio.open_connection(host, 80)
    try:
        writer.write(f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(asked(sys.argv[1]))), flush=True)
