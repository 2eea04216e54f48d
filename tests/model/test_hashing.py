"""Upstream's hash of a NodePool's template (NPL-1 to NPL-4) and Go's durations."""

from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.hashes import template_hash
from dovetail.model.values.durations import DurationError, parse_nanoseconds

KWOK = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
EC2 = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
EKS = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
RICH_METADATA = {"labels": {"team": "a", "env": "prod"}, "annotations": {"note": "x"}}
RICH_TAINTS = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}, {"key": "k2", "effect": "NoExecute"}]
RICH_SPEC = {
    "expireAfter": "24h",
    "terminationGracePeriod": "5m",
    "taints": RICH_TAINTS,
    "startupTaints": [{"key": "init", "value": "true", "effect": "NoSchedule"}],
}


def template(ref: dict[str, str], metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": metadata or {}, "spec": {"nodeClassRef": ref, "requirements": [], **spec}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (template(EC2, expireAfter="720h"), "6821555240594823858"),
        (template(EKS, expireAfter="336h", terminationGracePeriod="24h"), "4012513481623584108"),
        (template(KWOK, expireAfter="720h"), "12745407319442031341"),
        (template(KWOK, expireAfter="Never"), "7428780003907761376"),
        (template(KWOK, RICH_METADATA, **RICH_SPEC), "12394011746461451866"),
        (template(KWOK, RICH_METADATA, **{**RICH_SPEC, "taints": RICH_TAINTS[::-1]}), "12394011746461451866"),
        (template(KWOK, {"labels": {}}, expireAfter="720h"), "5327702334917744615"),
        (template(KWOK, expireAfter="720h", taints=[]), "845502862369909111"),
        (template(KWOK, expireAfter="720h", terminationGracePeriod="0s"), "16848824146983765585"),
        (template(KWOK, expireAfter="0s"), "13546070544088512816"),
    ],
)
def test_a_template_hashes_as_upstream_has_it(given: dict[str, Any], expected: str) -> None:
    """NPL-4."""
    assert template_hash(given) == expected


def test_two_identical_taints_cancel_out() -> None:
    """NPL-3."""
    twice = template(KWOK, expireAfter="720h", taints=[RICH_TAINTS[0], RICH_TAINTS[0]])
    assert template_hash(twice) == template_hash(template(KWOK, expireAfter="720h", taints=[]))


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("1h30m", 5400 * 10**9), ("1.5h", 5400 * 10**9), ("-5m", -300 * 10**9), ("0", 0), ("1µs", 1000)],
)
def test_a_duration_is_read_as_go_reads_it(text: str, nanoseconds: int) -> None:
    assert parse_nanoseconds(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "720", "1d", "h", "1h 30m", "Never", "9999999h"])
def test_what_go_does_not_read_is_no_duration(text: str) -> None:
    with pytest.raises(DurationError):
        parse_nanoseconds(text)
