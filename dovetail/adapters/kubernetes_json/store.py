"""The objects of one kind, as the watch reports them.

Every event is judged by the resourceVersion of its own object: an older or repeated one changes nothing, whatever the
order of events. Deletions are remembered for a while, so that a late repetition of an old event does not bring a
deleted object back.

Many new versions contain nothing new: each kubelet's heartbeat makes one, and each count of a ReplicaSet's pods. The
version is kept, because writes need it, but it is not a change: otherwise, with a thousand nodes, everything would be
looked at three times a second for nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from functools import cache
from operator import attrgetter
from typing import Any, Final

from dovetail.model.objects.unreadable import Unreadable

# How many deletions are remembered, at 150 bytes each. The server sends events in order, so one would do; this many
# covers any overlap of two streams.
_REMEMBERED_DELETIONS: Final = 10_000


# All values, those with each property of the index, and those with none.
GivenIndex = Callable[[Mapping[str, Any], Mapping[str, Any], Collection[Any]], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that is watched: where it is served, how it is read, and where snapshots keep it.

    `parse` turns the JSON into what the cache holds. Kinds with the same `snapshot_field` share that mapping, each
    entry under the kind's own prefix. An object is found by namespace/name, or by UID where `by_uid` is set.
    """

    name: str
    path: str  # below the server's address: /api/v1/pods
    parse: Callable[[dict[str, Any]], Any]
    snapshot_field: str = ""  # empty: in no snapshot, kept for look-ups only
    by_uid: bool = False
    shares_field: bool = False
    index: Callable[[Any], str] | None = None
    standing: Callable[[Any], Any] | None = None  # what an object says beside what comes and goes with pods
    optional: bool = False  # the view is usable without it: its definition may not be installed
    snapshot_index: tuple[str, GivenIndex] | None = None  # the field where snapshots have the index, and of what type
    grouped: Callable[[list[Any]], tuple[Any, ...]] = tuple  # what the values with one property are kept in

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects: v1, or group/version."""
        return self.path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Entry:
    """One object read: its value, or why it could not be read."""

    key: str
    uid: str
    version: int
    value: Any = None
    unreadable: Unreadable | None = None


class StoreIndex:
    """Values by one property. Tuples are replaced, never changed, so a reader's tuple stays as it was."""

    def __init__(self, property_of: Callable[[Any], str], grouped: Callable[[list[Any]], tuple[Any, ...]]) -> None:
        self._property_of, self._grouped = property_of, grouped
        self._values: dict[str, tuple[Any, ...]] = {}
        self._without: dict[int, Any] = {}  # those whose property is empty, by identity: there may be thousands

    def get(self, value: str) -> tuple[Any, ...]:
        """The values with that property; an empty property matches nothing."""
        return self._values.get(value, ())

    def change(self, old: Any, new: Any) -> None:
        """Remove the old value and add the new one; either may be None."""
        for value, mine in ((old, False), (new, True)):
            name = "" if value is None else self._property_of(value)
            if name:
                rest = [v for v in self._values.get(name, ()) if v is not old]
                self._set(name, [*rest, value] if mine else rest)
            elif mine and value is not None:
                self._without[id(value)] = value
            else:
                self._without.pop(id(value), None)

    def rebuild(self, values: Iterable[Any]) -> None:
        """Start again from these values."""
        lists: dict[str, list[Any]] = {}
        for value in values:
            lists.setdefault(self._property_of(value), []).append(value)
        self._without = {id(value): value for value in lists.pop("", ())}
        self._values = {name: self._grouped(members) for name, members in lists.items()}

    def copied(self) -> tuple[Mapping[str, tuple[Any, ...]], Collection[Any]]:
        """The values with each property, and those with none."""
        return self._values.copy(), tuple(self._without.values())

    def _set(self, name: str, members: list[Any]) -> None:
        if members:
            self._values[name] = self._grouped(members)
        else:
            self._values.pop(name, None)


@dataclass(slots=True)
class Contents:
    """What a store holds: values and unreadable objects by key, and the version and UID of both."""

    values: dict[str, Any] = field(default_factory=dict)
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)  # only where the key is no UID

    def put(self, entry: Entry) -> None:
        """Hold this entry in place of the one under its key."""
        self.versions[entry.key] = entry.version
        if entry.uid != entry.key:
            self.uids[entry.key] = entry.uid
        if entry.unreadable is None:
            self.values[entry.key] = entry.value
            self.unreadable.pop(entry.key, None)
        else:
            self.unreadable[entry.key] = entry.unreadable
            self.values.pop(entry.key, None)

    def drop(self, key: str) -> None:
        """Hold nothing under that key."""
        for mapping in (self.values, self.unreadable, self.versions, self.uids):
            mapping.pop(key, None)


class ChangeKind(IntEnum):
    NONE = 0  # a version at most
    PASSING = 1  # only what comes and goes with pods
    STANDING = 2


class KindStore:
    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.contents = Contents()
        self.index = StoreIndex(kind.index, kind.grouped) if kind.index else None
        self.seen = 0  # the newest version heard of, bookmarks included
        self.changed = 0  # which change of the cache was the last that was one of this kind
        self.stood = 0  # and the last that was one of more than what comes and goes
        self._floor = 0  # older events change nothing: the last list was complete up to here
        self._gone: dict[str, int] = {}  # deletions since then, oldest first
        self._given: Mapping[str, Any] | None = None  # to the last snapshot, until something changes

    def given(self) -> Mapping[str, Any]:
        """The fields of a snapshot. Snapshots share one copy until the next event: many looks need only a few kinds,
        and copying a large one takes milliseconds."""
        if self._given is None:
            self._given = self._fields()
        return self._given

    def _fields(self) -> dict[str, Any]:
        values, kind = self.contents.values, self.kind
        if kind.shares_field:
            return {kind.snapshot_field: {f"{kind.name}/{key}": value for key, value in values.items()}}
        if not kind.snapshot_field:
            return {}
        copied = values.copy()  # not dict(values), which takes five times as long
        found: dict[str, Any] = {kind.snapshot_field: copied}
        if kind.snapshot_index is not None and self.index is not None:
            name, made = kind.snapshot_index
            found[name] = made(copied, *self.index.copied())
        return found

    def is_news(self, key: str, version: int) -> bool:
        """Whether an event of that object at that version is newer than what is known."""
        return version > max(self._floor, self.contents.versions.get(key, 0), self._gone.get(key, 0))

    def put(self, entry: Entry) -> ChangeKind:
        """An object was created or has changed."""
        self.seen = max(self.seen, entry.version)
        if not self.is_news(entry.key, entry.version):
            return ChangeKind.NONE
        old, old_uid, old_unreadable = self._held(entry.key)
        self._gone.pop(entry.key, None)
        self.contents.put(entry)
        self._reindex(old, entry.value)
        self._given = None
        if old_uid != entry.uid or old_unreadable != entry.unreadable:
            return ChangeKind.STANDING
        return self._change(old, entry.value)

    def _change(self, old: Any, new: Any) -> ChangeKind:
        if _says_the_same(old, new):
            return ChangeKind.NONE
        standing = self.kind.standing
        same = standing is not None and old is not None and new is not None and standing(old) == standing(new)
        return ChangeKind.PASSING if same else ChangeKind.STANDING

    def drop(self, key: str, version: int) -> ChangeKind:
        self.seen = max(self.seen, version)
        known = self.contents.versions.get(key, 0)
        if version < known or version <= max(self._floor, self._gone.get(key, 0)):
            return ChangeKind.NONE
        old = self.contents.values.get(key)
        self.contents.drop(key)
        self._reindex(old, None)
        self._given = None
        self._gone.pop(key, None)
        self._gone[key] = version
        self._forget_deletions()
        return ChangeKind.STANDING if known > 0 else ChangeKind.NONE

    def replace(self, contents: Contents, version: int, *, afresh: bool) -> ChangeKind:
        """Everything that exists, as listed at that version.

        The list counts even if it is older than what was seen: the server may have been restored from a backup. Then
        equal versions say nothing (`afresh`).
        """
        differs = afresh or contents.versions != self.contents.versions
        self.contents, self._given = contents, None
        self.seen = self._floor = version
        self._gone.clear()
        if self.index is not None:
            self.index.rebuild(contents.values.values())
        return ChangeKind.STANDING if differs else ChangeKind.NONE

    def uid_of(self, key: str) -> str:
        """The UID of the object under that key, readable or not; empty where there is none."""
        return self.contents.uids.get(key) or (key if key in self.contents.versions else "")

    def _held(self, key: str) -> tuple[Any, str, Unreadable | None]:
        return self.contents.values.get(key), self.uid_of(key), self.contents.unreadable.get(key)

    def _reindex(self, old: Any, new: Any) -> None:
        if self.index is not None:
            self.index.change(old, new)

    def _forget_deletions(self) -> None:
        if len(self._gone) <= _REMEMBERED_DELETIONS:
            return
        for key in list(self._gone)[: _REMEMBERED_DELETIONS // 2]:
            self._floor = max(self._floor, self._gone.pop(key))


def _says_the_same(old: Any, new: Any) -> bool:
    """Whether two values of one object differ at most in their resourceVersion. For kinds kept raw never."""
    if type(old) is not type(new):
        return False
    read = _all_but_the_version(new.__class__)
    return bool(read(old) == read(new))


@cache
def _all_but_the_version(kind: type[Any]) -> Callable[[Any], Any]:
    """The content of an object of a kind. Comparing two takes a tenth of the time of reading one from its JSON."""
    if not is_dataclass(kind):
        return lambda value: value
    return attrgetter(*[each.name for each in fields(kind) if each.name != "resource_version"])
