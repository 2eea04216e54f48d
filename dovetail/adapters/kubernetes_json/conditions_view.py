"""The port ConditionsView, answered from the cache: objects that it keeps as models and objects that it keeps raw."""

from collections.abc import Mapping
from typing import Any

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.model.values.time import optional_time
from dovetail.ports.view import ConditionsListener, ObjectConditions


class CachedConditions:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def kinds(self) -> frozenset[str]:
        return frozenset(kind.name for kind in self._cache.kinds())

    def of_kind(self, kind: str) -> tuple[ObjectConditions, ...]:
        return tuple(conditions_of(found) for _, found in sorted(self._cache.objects(kind).items()))

    def listen(self, kind: str, listener: ConditionsListener) -> None:
        def changed(old: Any, new: Any) -> None:
            before = None if old is None else conditions_of(old)
            listener(before, None if new is None else conditions_of(new))

        self._cache.listen(kind, changed)


def conditions_of(found: Any) -> ObjectConditions:
    """The conditions of one object, a model or, for kinds that are kept raw, its JSON."""
    if not isinstance(found, Mapping):
        return ObjectConditions(
            name=found.name,
            labels=found.labels,
            conditions=found.conditions,
            deleting_since=found.deleting_since,
        )
    metadata = found["metadata"]
    return ObjectConditions(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        conditions=conditions((found.get("status") or {}).get("conditions")),
        deleting_since=optional_time(metadata.get("deletionTimestamp")),
    )
