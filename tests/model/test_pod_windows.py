"""Windows that a pod has of its own: outside them, and where they cannot be read, it stays."""

import pytest

from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.disruption.choose import choose
from dovetail.disruption.due import next_due
from dovetail.disruption.explain import explain_node
from dovetail.disruption.live_check import why_not_now
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan, Target
from dovetail.model import names
from dovetail.model.objects.pod_rules import Protection, is_evictable, is_protected, protection
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import parse_time
from dovetail.notices.decisions import pod_notice
from dovetail.notices.pods import protection_notice
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world

SETTINGS = DisruptionSettings()
# NOW is a Tuesday, 22:13:20 in UTC and 23:13:20 in Berlin.
OPEN, SHUT = "Tue 22:00-23:00", "Tue 23:00-05:00"


@pytest.mark.parametrize(
    ("text", "moment", "open_"),
    [
        ("Sat,Sun 02:00-06:00 Europe/Berlin", "2026-11-28T01:00:00Z", True),
        ("Sat,Sun 02:00-06:00 Europe/Berlin", "2026-11-28T05:00:00Z", False),
        ("Sat,Sun 02:00-06:00 Europe/Berlin", "2026-11-27T03:00:00Z", False),
        ("22:00-04:00", "2026-11-27T03:59:59Z", True),
        ("22:00-04:00", "2026-11-27T04:00:00Z", False),
        ("Fri 22:00-04:00", "2026-11-28T03:00:00Z", True),  # the day is that on which it begins
        ("Mon 01:00-02:00; Fri  03:00-04:00 Asia/Tokyo ", "2026-11-26T18:30:00Z", True),
        ("Mon 01:00-02:00 Asia/Tokyo; Fri 03:00-04:00", "2026-11-26T18:30:00Z", True),
        ("00:00-00:00", "2026-11-26T18:30:00Z", True),
    ],
)
def test_a_pod_is_moved_in_its_windows_and_not_outside(text: str, moment: str, open_: bool) -> None:
    pod = a_pod("n1", disruption_window=text)

    assert is_protected(pod, parse_time(moment)) is not open_
    assert is_evictable(pod, parse_time(moment)) is open_


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "Sat",
        "02:00",
        "2:00-6:00",
        "24:00-25:00",
        "Sat-Sun 02:00-06:00",
        "Saturday 02:00-06:00",
        "02:00-06:00 Europe/Nowhere",
        "02:00-06:00 ../../etc/localtime",
        "02:00-06:00 Asia/Tokyo; 03:00-04:00 Europe/Berlin",
        "02:00-06:00;" * 100,
        "0 2 * * 6",
        "٠٢:00-06:00",
    ],
)
def test_what_cannot_be_read_keeps_the_pod_and_is_named(text: str) -> None:
    pod = a_pod("n1", disruption_window=text)

    held = protection(pod, NOW)
    assert (held.active, held.until, held.by) == (True, None, names.DISRUPTION_WINDOW)
    assert held.why and len(held.why) < 250
    for notice in (pod_notice(pod, NOW), protection_notice(pod, NOW)):
        assert notice is not None
        assert (notice.reason, notice.type) == ("InvalidDisruptionWindow", "Warning")
        assert held.why in notice.message


@pytest.mark.parametrize(
    ("do_not_disrupt", "window", "expected"),
    [
        (None, OPEN, Protection(active=False)),
        ("true", OPEN, Protection(active=True)),
        ("true", SHUT, Protection(active=True)),
        ("1h", OPEN, Protection(active=True, until=NOW + 1800)),
    ],
)
def test_a_window_lifts_no_other_protection(do_not_disrupt: str | None, window: str, expected: Protection) -> None:
    pod = a_pod("n1", do_not_disrupt=do_not_disrupt, disruption_window=window, started=NOW - 1800)

    assert protection(pod, NOW) == expected


@pytest.mark.parametrize(("lasts", "until"), [("1h", NOW + 2800), ("3h", NOW + 9000)])
def test_of_two_protections_the_longer_holds(lasts: str, until: float) -> None:
    pod = a_pod("n1", do_not_disrupt=lasts, disruption_window=SHUT, started=NOW - 1800)

    assert protection(pod, NOW).until == until


def drifted(window: str, grace: float | None = None) -> Snapshot:
    pair = a_pair("n1", also=(names.DRIFTED,), claim={"termination_grace": grace})
    return a_world([pair], [a_pod("n1", disruption_window=window)], [a_pool(consolidate_after=None)])


def test_a_node_waits_for_the_window_of_its_pod_and_says_until_when() -> None:
    def goes(world: Snapshot) -> bool:
        return isinstance(choose(world, SETTINGS, never), DisruptionPlan)

    world = drifted(SHUT)
    assert (goes(drifted(OPEN)), goes(world)) == (True, False)
    assert goes(drifted(SHUT, grace=600.0))  # as with do-not-disrupt
    assert next_due(Fleet(world, SETTINGS)) == NOW + 2800
    [said] = [each for each in explain_node(world, SETTINGS, "n1").checks if each.why == WhyNot.POD_WINDOW]
    assert f"{names.DISRUPTION_WINDOW}: it is outside its windows until 2023-11-14T23:00:00Z" in said.message


def test_a_node_is_not_marked_where_its_pod_is_outside_its_window_by_then() -> None:
    world = drifted(SHUT)
    [claim], [node], pods = world.claims.values(), world.nodes.values(), world.pods.values()
    target = Target(
        claim=claim.name,
        claim_uid=claim.uid,
        node=node.name,
        node_uid=node.uid,
        provider_id=node.provider_id,
        pool="a",
        pods=tuple(pod.uid for pod in pods),
    )

    why = why_not_now(claim, node, pods, target, NOW)

    assert why.endswith(f"carries {names.DISRUPTION_WINDOW}: it is outside its windows")
    assert why_not_now(claim, node, pods, target, NOW + 2800) == ""


def test_the_annotation_is_read() -> None:
    metadata = {"name": "p", "namespace": "d", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    raw = {"metadata": {**metadata, "annotations": {names.DISRUPTION_WINDOW: SHUT}}, "spec": {"containers": []}}

    assert parse_pod(raw).disruption_window == SHUT
