"""Objects as files. A file appears under its name only when complete, so that a kill leaves no partial one."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dovetail.ports.failures import Unreachable

_UNFINISHED: Final = ".part"


class FolderObjects:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def put(self, name: str, data: bytes) -> None:
        """Written to a file next to it, which is then renamed."""
        await asyncio.to_thread(self._put, self.folder / name, data)

    async def get(self, name: str) -> bytes | None:
        """None if there is no such file."""
        return await asyncio.to_thread(self._get, self.folder / name)

    async def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """In one thread: switching threads costs more than reading a file."""
        return await asyncio.to_thread(lambda: [self._get(self.folder / name) for name in names])

    async def names(self, prefix: str) -> tuple[str, ...]:
        """As written below the folder."""
        return await asyncio.to_thread(self._names, prefix)

    async def delete(self, name: str) -> None:
        """The file; its folder stays."""
        await asyncio.to_thread((self.folder / name).unlink, missing_ok=True)

    async def close(self) -> None:
        """Nothing is open."""

    def _put(self, file: Path, data: bytes) -> None:
        unfinished = file.with_name(f"{file.name}.{os.getpid()}{_UNFINISHED}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(data)
            unfinished.replace(file)
        except OSError as error:
            raise Unreachable(str(file), f"cannot be written: {error.strerror}") from error

    def _get(self, file: Path) -> bytes | None:
        try:
            return file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreachable(str(file), f"cannot be read: {error.strerror}") from error

    def _names(self, prefix: str) -> tuple[str, ...]:
        below = self.folder / prefix.rpartition("/")[0]
        files = [file for file in below.rglob("*") if file.is_file() and file.suffix != _UNFINISHED]
        names = [file.relative_to(self.folder).as_posix() for file in files]
        return tuple(sorted(name for name in names if name.startswith(prefix)))
