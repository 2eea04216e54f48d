"""The metrics of Temporal's SDK, read from the page that its runtime shows on this machine."""

import socket
from collections.abc import Iterator

import pytest

from dovetail.worker import sdk_metrics
from dovetail.worker.sdk_metrics import HERE, counting_runtime, sdk_lines


@pytest.fixture(autouse=True)
def a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sdk_metrics, "_pages", [])
    counting_runtime.cache_clear()
    yield
    counting_runtime.cache_clear()


def test_what_is_counted_is_read_from_its_page() -> None:
    meter = counting_runtime().metric_meter
    meter.create_counter("request", "Requests.").add(3, {"operation": "Poll"})
    meter.create_histogram("request_latency", "Time.").record(7, {"operation": "Poll"})
    lines = [*sdk_lines()]

    assert "# HELP request Requests." in lines and "# TYPE request counter" in lines
    assert [line.rsplit(" ", 1)[1] for line in lines if line.startswith("request{")] == ["3"]
    buckets = [line for line in lines if line.startswith("request_latency_bucket{")]
    below = {line.partition('le="')[2].partition('"')[0]: int(line.rsplit(" ", 1)[1]) for line in buckets}
    assert below == {**{f"{bound:g}": int(bound >= 7) for bound in sdk_metrics.MILLISECONDS}, "+Inf": 1}


def test_a_port_that_another_process_has_is_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HERE, 0)) as taken, socket.socket() as free:
        free.bind((HERE, 0))
        ports = iter([taken.getsockname()[1], chosen := free.getsockname()[1]])
        free.close()
        monkeypatch.setattr("random.SystemRandom", lambda: Given(ports))
        counting_runtime()
    assert sdk_metrics._pages == [chosen]


def test_where_every_port_is_taken_the_error_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HERE, 0)) as taken:
        monkeypatch.setattr(sdk_metrics, "PORTS", [taken.getsockname()[1]])
        with pytest.raises(OSError, match=r"^METRICS_PORT: .*Address already in use"):
            counting_runtime()


def test_a_page_that_does_not_answer_is_said_and_the_others_stand(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as nobody:
        nobody.bind((HERE, 0))
        monkeypatch.setattr(sdk_metrics, "_pages", [nobody.getsockname()[1]])
        assert [*sdk_lines()] == []
    assert "the metrics of Temporal's SDK could not be read" in caplog.text


class Given:
    """Chance, as a test wants it."""

    def __init__(self, ports: Iterator[int]) -> None:
        self._ports = ports

    def choice(self, _among: object) -> int:
        return next(self._ports)
