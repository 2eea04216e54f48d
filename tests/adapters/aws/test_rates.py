"""How fast calls are made: as fast as AWS takes them, and slowly for a minute once it has throttled."""

import pytest

from dovetail.adapters.aws.rates import SLOW_SECONDS, UNTHROTTLED, Bucket


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def waits(bucket: Bucket, calls: int) -> list[float]:
    return [bucket.take() for _ in range(calls)]


def test_a_burst_goes_at_once_and_what_follows_faster_than_an_ordinary_account_may(clock: Clock) -> None:
    """Three hundred launches at the ordinary five a second would take fifty seconds, also where AWS allows fifty."""
    bucket = Bucket(50.0, 5.0, clock)

    assert waits(bucket, 50) == [0.0] * 50
    assert waits(bucket, 30)[-1] == pytest.approx(30 / (5 * UNTHROTTLED))


def test_once_aws_has_throttled_calls_go_at_the_ordinary_rate_for_a_minute(clock: Clock) -> None:
    bucket = Bucket(50.0, 5.0, clock)
    bucket.drain()

    assert waits(bucket, 10)[-1] == pytest.approx(2.0)
    clock.time += SLOW_SECONDS - 1
    bucket.drain()  # it throttles again: the minute begins anew
    clock.time += SLOW_SECONDS - 1
    waits(bucket, 50)
    assert bucket.take() == pytest.approx(1 / 5)

    clock.time += 2
    assert waits(bucket, 31)[-1] < 31 / 5


def test_a_bucket_never_holds_more_than_its_burst(clock: Clock) -> None:
    bucket = Bucket(3.0, 5.0, clock)
    clock.time += 3600

    assert [wait > 0 for wait in waits(bucket, 4)] == [False, False, False, True]
