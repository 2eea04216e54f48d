"""Quantiles of the last ten minutes, as Karpenter's summaries have them."""

from dovetail.telemetry.metrics.summaries import MOST_KEPT, Summaries


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_quantiles_are_of_the_window_and_the_sum_is_of_all() -> None:
    clock = Clock()
    found = Summaries({"d": "Words."}, "karpenter_", clock)
    found.observe("d", 100.0, {"nodepool": "p"})
    clock.now = 601.0
    for seconds in range(1, 101):
        found.observe("d", float(seconds), {"nodepool": "p"})

    assert list(found.lines()) == [
        "# HELP karpenter_d Words.",
        "# TYPE karpenter_d summary",
        'karpenter_d{nodepool="p",quantile="0"} 1',
        'karpenter_d{nodepool="p",quantile="0.5"} 50',
        'karpenter_d{nodepool="p",quantile="0.9"} 90',
        'karpenter_d{nodepool="p",quantile="0.99"} 99',
        'karpenter_d{nodepool="p",quantile="1"} 100',
        'karpenter_d_sum{nodepool="p"} 5150',
        'karpenter_d_count{nodepool="p"} 101',
    ]


def test_a_quiet_series_shows_no_number() -> None:
    clock = Clock()
    found = Summaries({"d": "Words."}, "karpenter_", clock)
    found.observe("d", -1.0, {})
    clock.now = 601.0
    lines = list(found.lines())
    assert 'karpenter_d{quantile="0.5"} NaN' in lines
    assert "karpenter_d_sum 0" in lines and "karpenter_d_count 1" in lines


def test_a_storm_is_bounded_and_still_counted() -> None:
    found = Summaries({"d": "Words."}, "karpenter_", Clock())
    for number in range(MOST_KEPT + 5):
        found.observe("d", float(number), {})
    lines = list(found.lines())
    assert f"karpenter_d_count {MOST_KEPT + 5}" in lines
    assert 'karpenter_d{quantile="0"} 5' in lines
