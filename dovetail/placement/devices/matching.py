"""Does a device match a request? Of one snapshot a hundred thousand pairs are remembered."""

from collections.abc import Mapping
from typing import Final

from dovetail.model.expressions.functions import Quantity, semver
from dovetail.model.expressions.values import Domains, ExpressionError
from dovetail.model.scheduling.devices import Attribute, Device, Version
from dovetail.placement.devices.needs import JudgedRequest

MOST_KNOWN: Final = 100_000  # each takes some 200 bytes; one more, and all are asked again


class Matcher:
    """Remembers which requests of one snapshot match which devices. Pairs are keyed by identity, so both are kept."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Device, Mapping[str, object]]] = {}
        self._known: dict[tuple[int, int], tuple[JudgedRequest, bool | str]] = {}

    def knows(self, request: JudgedRequest, device: Device) -> bool:
        """Whether the pair has been asked before."""
        return (id(request), id(device)) in self._known

    def matches(self, request: JudgedRequest, device: Device) -> bool:
        """Whether the device matches; ExpressionError if a selector has no value: no pod gets past such a device."""
        key = (id(request), id(device))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = (request, self._asked(request, device))
        if isinstance(known[1], str):
            raise ExpressionError(known[1])
        return known[1]

    def _asked(self, request: JudgedRequest, device: Device) -> bool | str:
        seen = self._view(device)
        try:
            for selector in request.selectors:
                found = selector.value(seen)
                if not isinstance(found, bool):
                    return f"device {device.id.name}: a selector is neither true nor false"
                if not found:
                    return False
        except ExpressionError as error:
            return f"device {device.id.name}: {error}"
        return True

    def _view(self, device: Device) -> Mapping[str, object]:
        known = self._seen.get(id(device))
        if known is None:
            attributes = {name: _value(value) for name, value in device.attributes.items()}
            view = {
                "driver": device.id.driver,
                "attributes": _by_domain({name: value for name, value in attributes.items() if value is not None}),
                "capacity": _by_domain({name: Quantity(amount) for name, amount in device.capacity.items()}),
                "allowMultipleAllocations": False,
            }
            known = self._seen[id(device)] = (device, {"device": view})
        return known[1]


def _value(value: Attribute) -> object:
    if not isinstance(value, Version):
        return value
    try:
        return semver(value.text)
    except ExpressionError:
        return None


def _by_domain(named: Mapping[str, object]) -> Domains:
    found: dict[str, dict[str, object]] = {}
    for name, value in named.items():
        domain, _, short = name.rpartition("/")
        found.setdefault(domain, {})[short] = value
    return Domains(found)
