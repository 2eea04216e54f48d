"""How a number of workers is shown: three by name, and that there are more."""

from dovetail.answers.doctor.temporal import shown_workers


def test_of_more_than_three_workers_the_others_are_counted() -> None:
    assert shown_workers(["a", "b", "c"]) == "3 workers: a, b, c"
    assert shown_workers(["a", "b", "c", "d", "e"]) == "5 workers: a, b, c and 2 more"
