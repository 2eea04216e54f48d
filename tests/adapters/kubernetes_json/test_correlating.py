"""EVT-0: which Event a notice becomes, as the recorder under Karpenter decides it."""

from dovetail.adapters.kubernetes_json.rendering.correlating import COMBINED, Correlator
from dovetail.notices.notice import Notice


def a_notice(message: str = "m", name: str = "n", **more: str) -> Notice:
    return Notice(kind="Node", name=name, reason=more.pop("reason", "R"), message=message, **more)  # type: ignore[arg-type]


def test_the_same_words_count_up_under_one_name() -> None:
    correlator = Correlator()
    first, second = correlator.correlated(a_notice(), 1000.0), correlator.correlated(a_notice(), 1300.0)
    assert first and second
    assert (second.name, second.count, second.first) == (first.name, 2, 1000.0)


def test_the_tenth_similar_message_is_combined_until_ten_minutes_are_quiet() -> None:
    correlator = Correlator()
    found = [correlator.correlated(a_notice(str(number)), 1000.0 + number) for number in range(11)]
    assert [told.message for told in found if told] == [*map(str, range(9)), f"{COMBINED}9", f"{COMBINED}10"]
    assert found[9] and found[10] and (found[10].name, found[10].count) == (found[9].name, 2)

    later = correlator.correlated(a_notice("later"), 1010.0 + 601.0)
    assert later and later.message == "later"


def test_another_reason_or_object_is_not_similar() -> None:
    correlator = Correlator()
    for number in range(11):
        correlator.correlated(a_notice(str(number)), 1000.0)
    other = [a_notice("x", name="other"), a_notice("x", reason="Other"), a_notice("x", type="Warning")]
    assert [told.message for told in (correlator.correlated(notice, 1000.0) for notice in other) if told] == ["x"] * 3


def test_one_object_gets_25_events_at_once_and_one_more_in_five_minutes() -> None:
    correlator = Correlator()

    def number_told(now: float) -> int:
        return sum(correlator.correlated(a_notice(), now) is not None for _ in range(40))

    assert [number_told(1000.0), number_told(1299.0), number_told(1301.0)] == [25, 0, 1]
    assert correlator.correlated(a_notice(type="Warning"), 1301.0), "a warning is not lost among normal events"
    assert correlator.correlated(a_notice(name="other"), 1301.0)


def test_pods_that_get_a_node_at_once_have_ten_events_and_then_five_a_second() -> None:
    """PLC-225: as Karpenter's limit for all pods together; another reason has room."""
    correlator = Correlator()

    def number_told(now: float) -> int:
        of_pods = [a_notice(name=f"{now}-{number}", reason="Nominated") for number in range(300)]
        return sum(correlator.correlated(notice, now) is not None for notice in of_pods)

    assert [number_told(1000.0), number_told(1001.0), number_told(1001.1), number_told(1061.0)] == [10, 5, 0, 10]
    assert correlator.correlated(a_notice(reason="Evicted"), 1061.0)


def test_an_event_that_could_not_be_written_is_told_anew() -> None:
    correlator = Correlator()
    first = correlator.correlated(a_notice(), 1000.0)
    assert first
    correlator.failed(first)
    again = correlator.correlated(a_notice(), 1001.0)
    assert again and again.count == 1 and again.name != first.name
