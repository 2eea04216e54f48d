"""An event loop whose clock moves only when a test moves it, and gates at which every call waits to be let through."""

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from worlds.fakes import World


class Loop(asyncio.SelectorEventLoop):
    """Time is the world's."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def time(self) -> float:
        return self.world.clock

    def settle(self) -> None:
        """Run until everything waits: for a gate, for news, for time."""
        for _ in range(5000):
            self.call_soon(self.stop)
            self.run_forever()
            if not self._ready:  # type: ignore[attr-defined]
                return
        raise AssertionError("it never comes to rest")

    def end(self) -> None:
        """Cancel what is left, and what that leaves behind, until nothing is."""
        for _ in range(20):
            for task in asyncio.all_tasks(self):
                task.cancel()
            self.settle()
        assert not asyncio.all_tasks(self), "a task goes on although all are cancelled"
        self.close()


class Gates:
    """Calls that wait to be let through, first come first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, asyncio.Future[None]]] = []

    async def wait(self, label: str) -> None:
        caller = (label, asyncio.get_running_loop().create_future())
        self.waiting.append(caller)
        try:
            await caller[1]
        finally:
            self.waiting.remove(caller)

    def open(self, pick: int) -> bool:
        """Let one of them through."""
        ready = [future for _, future in self.waiting if not future.done()]
        if ready:
            ready[pick % len(ready)].set_result(None)
        return bool(ready)


class Gated:
    """A port whose every call waits at a gate first; `after` hears of each that came back."""

    def __init__(self, port: object, gates: Gates, after: Callable[[], None]) -> None:
        self._port, self._gates, self._after = port, gates, after

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._port, name)
        if not iscoroutinefunction(call):
            return cast(Callable[..., Any], call)  # no request

        async def gated(*arguments: Any) -> Any:
            await self._gates.wait(name)
            try:
                return await call(*arguments)
            finally:
                self._after()

        return gated
