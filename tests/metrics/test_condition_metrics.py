"""Metrics of conditions and terminations by kind, and the same under the older names (MET-5, AWS-167)."""

from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.conditions_view import CachedConditions
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS, raw_kind
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.telemetry.metrics.exposition import counted, left_out_samples
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.karpenters.condition_metrics import ConditionMetrics
from dovetail.telemetry.metrics.scrape import meter_provider
from tests.metrics.text_format import read_page
from worlds.fakes import on_duty

CLASS = ("karpenter.k8s.aws", "EC2NodeClass")
NOW = 1_767_225_700.0  # 2026-01-01T00:01:40Z
BORN = "2026-01-01T00:00:00Z"


class Scraped:
    """A cache, what is counted of it, and the lines that a scrape would show."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader = InMemoryMetricReader()
        meter = meter_provider([self.reader]).get_meter("test")
        monkeypatch.setattr(metrics, "get_meter", lambda _name: meter)
        self.cache = Cache((*CLUSTER_KINDS, raw_kind(CLASS[1], "/apis/karpenter.k8s.aws/v1/ec2nodeclasses")))
        self.metrics = ConditionMetrics(CachedConditions(self.cache), [CLASS], lambda: NOW, duties=on_duty())
        self.metrics.follow()
        self.version = 0

    def hear(self, kind: str, name: str, *conditions: Json, deleted: bool = False, **metadata: Any) -> None:
        self.version += 1
        meta = {"name": name, "uid": name, "resourceVersion": str(self.version), "creationTimestamp": BORN, **metadata}
        reference = {"group": CLASS[0], "kind": CLASS[1], "name": "default"}
        spec = {"nodeClassRef": reference, "requirements": []}
        body = {"metadata": meta, "spec": spec, "status": {"conditions": list(conditions)}}
        self.cache.apply(kind, body, deleted=deleted)

    def left_out(self) -> list[Sample]:
        return [*left_out_samples(self.reader.get_metrics_data())]

    def lines(self) -> list[str]:
        lines = [*counted(self.reader.get_metrics_data())]
        lines += b"".join(self.metrics.blocks()).decode().splitlines()
        return lines


@pytest.fixture
def scraped(monkeypatch: pytest.MonkeyPatch) -> Scraped:
    return Scraped(monkeypatch)


def a_condition(status: str, changed: str, reason: str = "R") -> Json:
    return {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": changed}


OWN = 'karpenter_k8s_aws_ec2nodeclass="default",karpenter_sh_nodepool="p"'
LABELS = {f"{CLASS[0]}/ec2nodeclass": "default", names.NODE_POOL: "p"}


def test_a_transition_is_counted_with_how_long_the_last_status_stood(scraped: Scraped) -> None:
    """Under the kind's own name with the claim's labels, and under the older one with group and kind."""
    scraped.hear("NodeClaim", "c", a_condition("Unknown", BORN), labels=LABELS)
    scraped.hear("NodeClaim", "c", a_condition("True", "2026-01-01T00:00:30Z"), labels=LABELS)

    lines = scraped.lines()

    own = f'{OWN},reason="R",status="True",type="Ready"'
    twin = 'group="karpenter.sh",kind="NodeClaim",reason="R",status="True",type="Ready"'
    assert f"operator_nodeclaim_status_condition_transitions_total{{{own}}} 1" in lines
    assert f"operator_status_condition_transitions_total{{{twin}}} 1" in lines
    left = f'{OWN},status="Unknown",type="Ready"'
    assert f"operator_nodeclaim_status_condition_transition_seconds_sum{{{left}}} 30" in lines
    assert f'operator_nodeclaim_status_condition_transition_seconds_bucket{{{left},le="32"}} 1' in lines
    assert f'operator_nodeclaim_status_condition_transition_seconds_bucket{{{left},le="16"}} 0' in lines


def test_the_same_status_written_again_is_no_transition(scraped: Scraped) -> None:
    scraped.hear("NodeClaim", "c", a_condition("True", BORN))
    scraped.hear("NodeClaim", "c", a_condition("True", BORN, reason="Other"))

    counts = [
        line for line in scraped.lines() if line.startswith("operator_nodeclaim_status_condition_transitions_total{")
    ]

    assert [line.rpartition(" ")[2] for line in counts] == ["1"]


def test_gauges_show_how_an_object_stands_and_go_with_it(scraped: Scraped) -> None:
    """AWS-167: node classes, which are kept raw, as well."""
    scraped.hear("EC2NodeClass", "default", a_condition("False", BORN), deletionTimestamp="2026-01-01T00:01:00Z")

    lines = scraped.lines()
    scraped.hear("EC2NodeClass", "default", deleted=True, deletionTimestamp="2026-01-01T00:01:00Z")
    after = scraped.lines()

    stands = 'namespace="",name="default",type="Ready",status="False",reason="R"'
    assert f"operator_ec2nodeclass_status_condition_count{{{stands}}} 1" in lines
    assert f"operator_ec2nodeclass_status_condition_current_status_seconds{{{stands}}} 100.000" in lines
    twin = 'namespace="",name="default",group="karpenter.k8s.aws",kind="EC2NodeClass"'
    assert f"operator_termination_current_time_seconds{{{twin}}} 40.000" in lines
    assert not [line for line in after if "status_condition_count{" in line or "current_time_seconds{" in line]
    assert "operator_ec2nodeclass_termination_duration_seconds_sum 40" in after


def test_a_percent_sign_in_a_reason_stays_one(scraped: Scraped) -> None:
    """The lines are kept with a place for their age, which is filled in at each scrape."""
    scraped.hear("NodePool", "p", a_condition("False", BORN, reason="100%s"))

    stands = 'namespace="",name="p",type="Ready",status="False",reason="100%s"'
    for _ in range(2):
        assert f"operator_nodepool_status_condition_current_status_seconds{{{stands}}} 100.000" in scraped.lines()


def test_nodes_have_no_older_names_and_no_family_stands_twice(scraped: Scraped) -> None:
    """MET-5: Prometheus refuses a page on which a family is announced twice."""
    scraped.hear("Node", "n", a_condition("True", BORN), labels={**LABELS, names.INITIALIZED: "true"})
    scraped.hear("NodePool", "p", a_condition("True", BORN))

    lines = scraped.lines()

    own = f'{OWN},karpenter_sh_initialized="true",type="Ready",status="True",reason="R"'
    assert f'operator_node_status_condition_count{{namespace="",name="n",{own}}} 1' in lines
    assert not [line for line in lines if 'kind="Node"' in line]
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


UNKNOWN, TRUE, FALSE = "Unknown", "True", "False"
# What the conditions of one claim go through, from its launch to its end.
LIFE = (
    [("Launched", UNKNOWN, "Awaiting"), ("Registered", UNKNOWN, "Awaiting"), ("Initialized", UNKNOWN, "Awaiting")],
    [("Launched", TRUE, "Launched"), ("Registered", FALSE, "NodeNotFound"), ("Ready", UNKNOWN, "Dependents")],
    [("Launched", TRUE, "Launched"), ("Registered", TRUE, "Registered"), ("Initialized", FALSE, "NodeNotReady")],
    [("Initialized", TRUE, "Initialized"), ("Ready", TRUE, "Ready"), ("Consolidatable", TRUE, "Consolidatable")],
    [("Consolidatable", FALSE, "NotConsolidatable"), ("Drifted", TRUE, "NodePoolDrifted")],
    [("DisruptionReason", TRUE, "Drifted"), ("Drained", UNKNOWN, "Draining")],
    [("Drained", TRUE, "Drained"), ("VolumesDetached", TRUE, "Detached"), ("InstanceTerminating", TRUE, "Ended")],
)


def live_and_leave(scraped: Scraped, pool: str) -> None:
    """A claim of that pool comes and goes."""
    labels = {f"{CLASS[0]}/ec2nodeclass": f"class-{pool}", names.NODE_POOL: pool}
    for stage in LIFE:
        conditions = [{**a_condition(status, BORN, reason), "type": kind} for kind, status, reason in stage]
        scraped.hear("NodeClaim", f"claim-{pool}", *conditions, labels=labels)
    scraped.hear("NodeClaim", f"claim-{pool}", labels=labels, deleted=True, deletionTimestamp=BORN)


@pytest.mark.slow
def test_prometheus_reads_the_page_however_many_pools_have_been(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK folds what is beyond its limit into a series whose label has dots; Prometheus then takes nothing."""
    most, pools = 3_000, 250  # in place of what a thousand pools have; the SDK's own limit is another
    monkeypatch.setattr("dovetail.telemetry.metrics.scrape.MOST_SERIES", most)
    scraped = Scraped(monkeypatch)
    for number in range(pools):
        live_and_leave(scraped, f"team-{number}")

    found = read_page(scraped.lines())
    beyond = {dict(sample.labels)["metric"]: sample.value for sample in scraped.left_out()}

    name = "operator_nodeclaim_status_condition_transitions_total"
    counts = [value for (family, _), value in found.items() if family == name]
    assert len(counts) == most and set(counts) == {1.0}
    assert sum(counts) + beyond[name] == pools * len({(k, s, r) for stage in LIFE for k, s, r in stage})
    assert not any("overflow" in label for _, labels in found for label, _ in labels)
