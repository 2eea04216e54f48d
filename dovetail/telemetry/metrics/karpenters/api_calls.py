"""Calls to the API server by verb and code, under the names of Karpenter's client library.

A watch does not count as a call: it lasts for minutes, and has `dovetail_watch_broken`.
"""

from typing import Final

from opentelemetry import metrics

from dovetail.telemetry.metrics.instruments import Instruments

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.api_calls"),
    counters={"request_total": "Requests to the API server, by verb and status; code <error> where no answer came."},
    histograms={
        "request_duration_seconds": (
            "Seconds of requests to the API server, by verb and what they are about.",
            (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
        )
    },
    prefix="client_go_",
)


def called(verb: str, path: str, status: int, seconds: float) -> None:
    """A request has ended. `status` 0: without an answer."""
    INSTRUMENTS.count("request_total", {"method": verb, "code": str(status) if status else "<error>"})
    INSTRUMENTS.observe("request_duration_seconds", seconds, {"verb": verb, **subject_of(path)})


def subject_of(path: str) -> dict[str, str]:
    """Group, version, kind (its plural, as in the path) and subresource; no names, which are unlimited in number."""
    parts = [part for part in path.split("?")[0].split("/") if part]
    group, rest = ("", parts[1:]) if parts[:1] == ["api"] else ("/".join(parts[1:2]), parts[2:])
    version, rest = (rest[0] if rest else ""), rest[1:]
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    kind, subresource = (rest[0] if rest else ""), (rest[2] if len(rest) > 2 else "")
    return {"group": group, "version": version, "kind": kind, "subresource": subresource}
