"""Variables and gates of Karpenter that have no effect here, each with its reason.

A Deployment made for Karpenter sets some of them, and its flags have the same names. They are accepted without an
error; one that asks for something not done here is named at the start, so that nobody relies on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutEffect:
    """A variable that is accepted and not used."""

    variable: str
    reason: str
    asks_nothing: frozenset[str] = frozenset()  # values with which nothing is missed
    is_switch: bool = False  # its flag may come without a value


_LEADERLESS: Final = "all workers serve, and Temporal hands each piece of work to one of them: there is no leader"
_SWITCH_OFF: Final = frozenset({"false"})

WITHOUT_EFFECT: Final[tuple[WithoutEffect, ...]] = (
    WithoutEffect(
        variable="KARPENTER_SERVICE",
        reason="it named the Service of Karpenter's webhooks; there are none",
    ),
    WithoutEffect(
        variable="KUBERNETES_MIN_VERSION",
        reason="Karpenter's chart sets it for its own checks; the versions served are in docs/guides/compatibility.md",
    ),
    WithoutEffect(
        variable="KUBE_CLIENT_QPS",
        reason="requests are not held back by a rate: steps wait for their answers, and the API server's own "
        "priority and fairness decides",
    ),
    WithoutEffect(variable="KUBE_CLIENT_BURST", reason="as KUBE_CLIENT_QPS"),
    WithoutEffect(
        variable="ENABLE_PROFILING",
        reason="there is no profiler's endpoint; use py-spy on the process",
        asks_nothing=_SWITCH_OFF,
        is_switch=True,
    ),
    WithoutEffect(
        variable="DISABLE_CONTROLLER_WARMUP",
        reason=_LEADERLESS,
        asks_nothing=frozenset({"true", "false"}),
        is_switch=True,
    ),
    WithoutEffect(
        variable="DISABLE_LEADER_ELECTION",
        reason=_LEADERLESS,
        asks_nothing=frozenset({"true", "false"}),
        is_switch=True,
    ),
    WithoutEffect(
        variable="LEADER_ELECTION_NAME",
        reason=f"{_LEADERLESS}. A Karpenter that still runs is seen by the Lease karpenter-leader-election alone",
        asks_nothing=frozenset({"karpenter-leader-election"}),
    ),
    WithoutEffect(
        variable="MEMORY_LIMIT",
        reason="it steers the collector of Go's memory; the pod's own limit holds",
        asks_nothing=frozenset({"-1"}),
    ),
    WithoutEffect(
        variable="CPU_REQUESTS",
        reason="it sizes the concurrency of Karpenter's controllers; how many steps run at once is fixed here",
    ),
    WithoutEffect(
        variable="LOG_OUTPUT_PATHS",
        reason="logs go to standard error",
        asks_nothing=frozenset({"stdout", "stderr"}),
    ),
    WithoutEffect(
        variable="LOG_ERROR_OUTPUT_PATHS",
        reason="logs go to standard error",
        asks_nothing=frozenset({"stderr"}),
    ),
)

GATES_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "DRANVIDIAGPU": "no instance type is known by its devices; see docs/guides/devices.md",
    "DRAEFA": "no instance type is known by its devices; see docs/guides/devices.md",
}


def set_without_effect(source: Mapping[str, str]) -> Iterator[tuple[WithoutEffect, str, bool]]:
    """The settings without effect that are set, with their values, and whether the value asks for something not done
    here."""
    for one in WITHOUT_EFFECT:
        value = source.get(one.variable, "").strip()
        if value:
            yield one, value, value.lower() not in one.asks_nothing
