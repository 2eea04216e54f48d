"""The cluster in memory, fed with the raw JSON of lists and watches.

Fed by a watch, from its own thread or from the same event loop, and read through CachedView. Pure memory: no request,
no clock. An object that cannot be read is left out, its previous version too, and reported once: nothing is decided on
what an object said earlier. Every change and every copy happens under one lock, so that no snapshot has pods newer than
its nodes; parsing happens outside the lock.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from dovetail.adapters.kubernetes_json.bell import Bell
from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS, UnreadableObject, name_in
from dovetail.adapters.kubernetes_json.parsing.outlines import outline_of
from dovetail.adapters.kubernetes_json.store import ChangeKind, Contents, Entry, Kind, KindStore
from dovetail.messages.writes import Write
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import STANDING
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.model.values.quoting import one_line

_log = logging.getLogger(__name__)


def log_unreadable(unreadable: Unreadable) -> None:
    """The default report: one line."""
    _log.warning("left out %s %s: %s: %s", unreadable.kind, unreadable.name, unreadable.field, unreadable.message)


class Identity(NamedTuple):
    """Which object, and which version of it."""

    key: str
    uid: str
    version: int


class Cache:
    """Objects of the given kinds. Safe to feed from one thread and to read from others."""

    def __init__(self, kinds: Iterable[Kind], report: Callable[[Unreadable], None] = log_unreadable) -> None:
        self._stores = {kind.name: KindStore(kind) for kind in kinds}
        self._report = report
        self._reported: dict[tuple[str, str], Unreadable] = {}
        self._lock = threading.Lock()
        self._listeners: dict[str, tuple[Callable[[Any, Any], None], ...]] = {}
        self.bell = Bell()  # rings at every event and every bookmark, for those who wait for a version
        self.changes = Bell()  # rings when the revision has risen: not at every kubelet's heartbeat
        self.revision = 0  # rises with every change of more than a version
        self._poked = 0  # the revision at the last poke

    # Feeding

    def apply(self, kind: str, raw: Json, *, deleted: bool) -> None:
        """One watch event: an object was added, has changed or, with its last state, was deleted."""
        store = self._stores[kind]
        try:
            identity = identify(store.kind, raw)
        except UnreadableObject as error:
            self._report(Unreadable(kind=kind, name=error.name, field=error.field, message=error.message))
            return
        key, version = identity.key, identity.version
        old, before = store.contents.values.get(key), self.revision  # only this thread feeds
        if deleted:
            with self._lock:
                self._count(store, store.drop(key, version))
            self._reported.pop((kind, key), None)
        elif store.is_news(key, version):
            entry = self._read(store.kind, raw, identity)
            with self._lock:
                self._count(store, store.put(entry))
        if kind in self._listeners:
            self._notify(kind, old, store.contents.values.get(key))
        self._ring(before)

    def replace(self, kind: str, raws: Iterable[Json], version: int) -> None:
        """A whole list at its version, at once."""
        listing = self.listing(kind)
        for raw in raws:
            listing.add(raw, version)
        listing.finish(version)

    def listing(self, kind: str, *, went_back: bool = False) -> "Listing":
        """A list that comes page by page: what was held before stays until the last page has come. `went_back`: the
        server has been seen at an older version than before."""
        return Listing(self, self._stores[kind], went_back=went_back)

    def bookmark(self, kind: str, version: int) -> None:
        """Nothing of that kind has happened up to this version."""
        with self._lock:
            store = self._stores[kind]
            store.seen = max(store.seen, version)
        self.bell.ring()

    def poke(self) -> None:
        """Wake those who wait: the view has become usable or unusable."""
        with self._lock:
            self.revision += 1
            self._poked = self.revision
        self.changes.ring()
        self.bell.ring()

    def listen(self, kind: str, listener: Callable[[Any, Any], None]) -> None:
        """Call `listener` with each object of a kind as it changes: before and after, None if there is none.

        The objects that exist now come first; a kind may have several listeners. The calls are made by the thread that
        feeds the cache, outside the lock; of a list only what differs is reported.
        """
        self._listeners[kind] = (*self._listeners.get(kind, ()), listener)
        for key in self.objects(kind):
            found = self.get(kind, key)
            if found is not None:
                listener(None, found)

    # Reading

    def snapshot(self, now: float) -> Snapshot:
        """Everything at one moment: copies of the dictionaries, of a kind one for all snapshots until it changes; 3 ms
        at 100,000 pods."""
        fields: dict[str, Any] = {}
        with self._lock:
            seen = {name: store.seen for name, store in self._stores.items()}
            changed = self._changed()
            for store in self._stores.values():
                for name, given in store.given().items():
                    known = fields.get(name)
                    fields[name] = given if known is None else {**known, **given}
            fields["unreadable"] = tuple(
                u for store in self._stores.values() for u in store.contents.unreadable.values()
            )
        return Snapshot(now=now, seen=seen, changed=changed, **fields)

    def get(self, kind: str, key: str) -> Any:
        """One object by its key, or None."""
        with self._lock:
            return self._stores[kind].contents.values.get(key)

    def indexed(self, kind: str, value: str) -> tuple[Any, ...]:
        with self._lock:
            index = self._stores[kind].index
            if index is None:
                raise LookupError(f"{kind} has no index")
            return index.get(value)

    def objects(self, kind: str) -> Mapping[str, Any]:
        """All readable objects of one kind by key; raw dictionaries for the kinds that are kept raw (NodeClasses)."""
        with self._lock:
            return self._stores[kind].contents.values.copy()

    def unreadable_on(self, kind: str, node: str, now: float) -> Unreadable | None:
        """One of the unreadable objects that hold that node."""
        with self._lock:
            unreadable = self._stores[kind].contents.unreadable.values()
            return next((u for u in unreadable if u.node == node and u.holds_its_node(now)), None)

    def unreadable(self) -> tuple[Unreadable, ...]:
        """The objects that cannot be read now, by kind and name."""
        with self._lock:
            found = [unreadable for store in self._stores.values() for unreadable in store.contents.unreadable.values()]
        return tuple(sorted(found, key=lambda u: (u.kind, u.name)))

    def has_seen(self, write: Write) -> bool:
        """Whether a snapshot taken now includes that write; always so for kinds that are not watched."""
        with self._lock:
            store = self._stores.get(write.kind)
            if store is None:
                return True
            if write.version == 0:
                held = store.uid_of(write.uid if store.kind.by_uid else write.name)
                return not held or held != write.uid
            return store.seen >= write.version

    def has_listed(self, kind: str) -> bool:
        """Whether anything has been heard of that kind since the start: a list, an event or a bookmark."""
        return self._stores[kind].seen > 0

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(store.kind for store in self._stores.values())

    def revision_of(self, kinds: Collection[str]) -> int:
        """The revision at the last change of one of these kinds, or when all were woken."""
        with self._lock:
            changed = self._changed()
        return max([self._poked, *[changed.get(kind, 0) for kind in kinds]])

    # Inside

    def _changed(self) -> dict[str, int]:
        found = {name: store.changed for name, store in self._stores.items()}
        return found | {name + STANDING: store.stood for name, store in self._stores.items() if store.kind.standing}

    def _read(self, kind: Kind, raw: Json, identity: Identity) -> Entry:
        """Parse one object. An error that the parser did not foresee means unreadable: it must not end the watch."""
        key, uid, version = identity
        try:
            return Entry(key, uid, version, value=kind.parse(raw))
        except UnreadableObject as error:
            place, message = error.field, error.message
        except RAW_FAULTS as error:
            place, message = "", one_line(f"{type(error).__name__}: {error}")
        unreadable = Unreadable(
            kind=kind.name,
            name=full_name(raw),
            field=place,
            message=message,
            node=_node_of(raw),
            uid=uid,
            pod=outline_of(raw) if kind.name == "Pod" else None,
        )
        if self._reported.get((kind.name, key)) != unreadable:
            self._reported[kind.name, key] = unreadable
            self._report(unreadable)
        return Entry(key, uid, version, unreadable=unreadable)

    def _forget_reports(self, store: KindStore) -> None:
        kind = store.kind.name
        for key in [k for k in self._reported if k[0] == kind and k[1] not in store.contents.unreadable]:
            del self._reported[key]

    def _notify(self, kind: str, old: Any, new: Any) -> None:
        if old is not new:
            for listener in self._listeners[kind]:
                listener(old, new)

    def _count(self, store: KindStore, change: ChangeKind) -> None:
        if change:
            self.revision += 1
            store.changed = self.revision
        if change is ChangeKind.STANDING:
            store.stood = self.revision

    def _ring(self, before: int) -> None:
        if self.revision != before:
            self.changes.ring()
        self.bell.ring()


class Listing:
    """A list that comes in pages. Objects that have not changed since they were last read are not read again, unless
    the server was restored from a backup: it gives the same versions out a second time, to other contents."""

    def __init__(self, cache: Cache, store: KindStore, *, went_back: bool) -> None:
        self._cache = cache
        self._store = store
        self._went_back = went_back
        self._contents = Contents()

    def add(self, raw: Json, listed: int) -> None:
        """One object of the list, which is of version `listed`."""
        try:
            identity = identify(self._store.kind, raw)
        except UnreadableObject as error:
            self._cache._report(Unreadable(kind=error.kind, name=error.name, field=error.field, message=error.message))
            return
        key, uid, version = identity
        held = self._store.contents
        same = not self._is_afresh(listed) and held.versions.get(key) == version and self._store.uid_of(key) == uid
        known = held.values.get(key) if same else None
        if known is not None:
            self._contents.put(Entry(key, uid, version, value=known))
        else:
            self._contents.put(self._cache._read(self._store.kind, raw, identity))

    def _is_afresh(self, listed: int) -> bool:
        return self._went_back or listed < self._store.seen

    def finish(self, listed: int) -> None:
        """The list is complete: it replaces everything held so far."""
        before, kind, revision = self._store.contents.values, self._store.kind.name, self._cache.revision
        with self._cache._lock:
            afresh = self._is_afresh(listed)
            self._cache._count(self._store, self._store.replace(self._contents, listed, afresh=afresh))
        if kind in self._cache._listeners:
            for key in before.keys() | self._contents.values.keys():
                self._cache._notify(kind, before.get(key), self._contents.values.get(key))
        self._cache._forget_reports(self._store)
        self._cache._ring(revision)


def identify(kind: Kind, raw: Json) -> Identity:
    """The key, the UID and the version of an object."""
    try:
        meta = raw["metadata"]
        uid, version = str(meta.get("uid") or ""), int(meta["resourceVersion"])
        return Identity(uid if kind.by_uid else full_name(raw), uid, version)
    except RAW_FAULTS:
        raise UnreadableObject(kind.name, name_in(raw), "metadata", "no name or no resourceVersion") from None


def full_name(raw: Json) -> str:
    """namespace/name, or the name alone of an object without a namespace."""
    meta = raw.get("metadata") or {}
    namespace, name = meta.get("namespace"), meta.get("name") or ""
    return f"{namespace}/{name}" if namespace else str(name)


def _node_of(raw: Json) -> str:
    """spec.nodeName of a pod or an attachment; empty if there is none."""
    spec = raw.get("spec")
    node = spec.get("nodeName") if isinstance(spec, dict) else None
    return node if isinstance(node, str) else ""
