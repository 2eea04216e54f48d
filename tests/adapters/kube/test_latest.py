"""Changes of one object take turns, each on the newest version that is known, without a request where that is older."""

from dovetail.adapters.kube.objects.latest import KEPT_SECONDS, MOST_KEPT, LatestAnswers
from dovetail.model.nodes import NodeClaim
from worlds.disruption import a_claim


def at_version(version: int, name: str = "one", uid: str = "uid-one") -> NodeClaim:
    return a_claim(name=name, uid=uid, resource_version=str(version))


def test_an_older_version_meets_the_newer_one() -> None:
    latest = LatestAnswers[NodeClaim]()
    latest.remember(at_version(9))
    latest.remember(at_version(7))  # an answer that was overtaken

    newer = latest.newer_than(at_version(8))

    assert newer is not None and newer.resource_version == "9"
    assert latest.newer_than(at_version(9)) is None
    assert latest.newer_than(at_version(10)) is None


def test_another_object_of_that_name_is_not_the_same() -> None:
    latest = LatestAnswers[NodeClaim]()
    latest.remember(at_version(9))

    assert latest.newer_than(at_version(1, uid="uid-of-another")) is None


def test_a_server_that_was_restored_from_a_backup_is_believed() -> None:
    latest = LatestAnswers[NodeClaim]()
    latest.remember(at_version(9_000))

    latest.replace(at_version(12))

    assert latest.newer_than(at_version(12)) is None


def test_what_the_watch_has_long_brought_is_forgotten() -> None:
    clock = [0.0]
    latest = LatestAnswers[NodeClaim](lambda: clock[0])
    latest.remember(at_version(9))
    clock[0] = KEPT_SECONDS

    latest.remember(at_version(1, "two", "uid-two"))

    assert latest.newer_than(at_version(8)) is None


def test_the_oldest_are_forgotten_where_there_are_many() -> None:
    latest = LatestAnswers[NodeClaim]()
    for index in range(MOST_KEPT + 1):
        latest.remember(at_version(9, f"claim-{index}", f"uid-{index}"))

    assert latest.newer_than(at_version(8, "claim-0", "uid-0")) is None
    assert latest.newer_than(at_version(8, "claim-1", "uid-1")) is not None


def test_an_answer_is_told_for_a_minute_though_nothing_else_is_answered() -> None:
    """A server that was restored meanwhile may hold an older object, which the watch brings."""
    clock = [0.0]
    latest = LatestAnswers[NodeClaim](lambda: clock[0])
    latest.remember(at_version(9))

    assert latest.of("one") is not None
    clock[0] = KEPT_SECONDS + 1.0
    assert latest.of("one") is None
