"""Whatever order, repetition and relisting the stream goes through, the cache ends with what is there.

A true history is drawn first (objects come, change, break, go, come back under another UID), then delivered badly:
shuffled within a window, each event once or more, lists in between. The naive model knows the history itself.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.messages.writes import Write
from tests.adapters.kubernetes_json.kinds_for_tests import ALL, a_thing

Truth = dict[str, tuple[str, int, str]]  # name -> uid, version, place


@dataclass(frozen=True)
class Event:
    version: int
    raw: dict[str, Any]
    deleted: bool


def true_history(acts: list[tuple[str, str]]) -> tuple[list[Event], list[Truth]]:
    """The events of a history and the state after each; version and index agree."""
    truth: Truth = {}
    events, states = [], [dict(truth)]
    for version, (name, place) in enumerate(acts, start=1):
        uid = truth[name][0] if name in truth else f"{name}-{version}"
        deleted = place == "gone" and name in truth
        if deleted:
            raw = a_thing(name, version, truth.pop(name)[2], uid=uid)
        else:
            truth[name] = (uid, version, "a" if place == "gone" else place)
            raw = a_thing(name, version, truth[name][2], uid=uid)
        events.append(Event(version, raw, deleted))
        states.append(dict(truth))
    return events, states


def lists_of(state: Truth) -> list[dict[str, Any]]:
    return [a_thing(name, version, place, uid=uid) for name, (uid, version, place) in state.items()]


def check(cache: Cache, kind: str, state: Truth) -> None:
    key = 0 if kind == "Pod" else None
    readable = {(uid if key == 0 else name): (uid, str(v), p) for name, (uid, v, p) in state.items() if p != "nowhere"}
    assert {k: (t.uid, t.resource_version, t.place) for k, t in cache.objects(kind).items()} == readable
    for place in ("a", "b"):
        expected = {uid for uid, _, p in state.values() if p == place}
        assert {t.uid for t in cache.indexed(kind, place)} == expected
        assert len(cache.indexed(kind, place)) == len(expected)
    assert {u.name for u in cache.unreadable()} == {name for name, (_, _, p) in state.items() if p == "nowhere"}


acts = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["a", "b", "nowhere", "gone", ""])), max_size=30)


@settings(max_examples=300, deadline=None)
@given(acts=acts, kind=st.sampled_from(["Node", "Pod"]), data=st.data())
def test_after_all_events_the_cache_holds_what_is_there(
    acts: list[tuple[str, str]], kind: str, data: st.DataObject
) -> None:
    events, states = true_history(acts)
    listed = data.draw(st.integers(0, len(events)))
    repeats = data.draw(st.lists(st.sampled_from(events), max_size=10)) if events else []
    cache = Cache(ALL, report=lambda _: None)

    before = data.draw(st.permutations(events[:listed] + repeats))
    for event in before[: data.draw(st.integers(0, len(before)))]:
        cache.apply(kind, event.raw, deleted=event.deleted)
    cache.replace(kind, lists_of(states[listed]), listed)
    check(cache, kind, states[listed])
    for event in data.draw(st.permutations(events[listed:] + repeats)):
        cache.apply(kind, event.raw, deleted=event.deleted)

    check(cache, kind, states[-1])
    assert cache.snapshot(0.0).seen[kind] == max([listed, *(e.version for e in events)], default=0)


@settings(max_examples=100, deadline=None)
@given(acts=acts, data=st.data())
def test_in_order_every_moment_is_a_true_one(acts: list[tuple[str, str]], data: st.DataObject) -> None:
    events, states = true_history(acts)
    cache = Cache(ALL, report=lambda _: None)

    for event, state in zip(events, states[1:], strict=True):
        cache.apply("Node", event.raw, deleted=event.deleted)
        if data.draw(st.booleans()):  # resumed too far back: an old stretch comes again
            start = data.draw(st.integers(0, event.version - 1))
            for again in events[start : event.version]:
                cache.apply("Node", again.raw, deleted=again.deleted)
        check(cache, "Node", state)


@settings(max_examples=200, deadline=None)
@given(acts=acts, kind=st.sampled_from(["Node", "Pod"]))
def test_in_order_the_revision_rises_where_something_else_than_a_version_changes(
    acts: list[tuple[str, str]], kind: str
) -> None:
    """And what is held has the newest version all the same, so that a write at it meets no conflict."""
    events, states = true_history(acts)
    cache = Cache(ALL, report=lambda _: None)

    for event, before, after in zip(events, states, states[1:], strict=False):
        revision = cache.revision
        cache.apply(kind, event.raw, deleted=event.deleted)

        assert (cache.revision > revision) == (without_versions(before) != without_versions(after))
        check(cache, kind, after)
        name, uid = event.raw["metadata"]["name"], event.raw["metadata"]["uid"]
        assert cache.has_seen(Write(kind=kind, name=name, uid=uid, version=event.version))


def without_versions(state: Truth) -> dict[str, tuple[str, str]]:
    return {name: (uid, place) for name, (uid, _, place) in state.items()}
