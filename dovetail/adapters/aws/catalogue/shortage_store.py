"""Shortages in a ConfigMap, shared by all workers and kept over restarts.

Two entries per shortage, its end and its first refusal in seconds; writers merge, so that none removes what another has
just found.
"""

from typing import Final

from dovetail.ports.raw_objects import RawObjects

NAME: Final = "dovetail-shortages"


class ConfigMapStore:
    """The ConfigMap; `config_maps` are those of our own namespace."""

    def __init__(self, config_maps: RawObjects) -> None:
        self._config_maps = config_maps

    async def read(self) -> dict[str, float]:
        found = await self._config_maps.read(NAME) or {}
        data: dict[str, str] = found.get("data") or {}
        return {key: float(value) for key, value in data.items() if _is_number(value)}

    async def write(self, changes: dict[str, float | None]) -> None:
        data = {key: None if end is None else f"{end:.3f}" for key, end in changes.items()}
        await self._config_maps.merge(NAME, {"data": data})


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
