"""What the cloud has run out of and what it refuses, where people look: `explain pod`, `status`, `doctor`."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.doctor.cluster import launches_check
from dovetail.answers.explain.explain_pod import explain_pod
from dovetail.answers.look.sources import Look
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.answer import ClusterStatus, StatusAnswer
from dovetail.answers.status.status import status_of
from dovetail.answers.status.text import status_text
from dovetail.model import names
from dovetail.model.pools import Catalogue
from dovetail.model.reasons.refusals import REFUSED_SECONDS
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.notices.placements import placement_notices
from dovetail.placement.place_pods import Index, place
from dovetail.settings.deciding import placement_settings
from dovetail.workflows.options import launching
from tests.cli.test_explain_node import a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, looked
from worlds.manifests import pod_manifest

DENIED = "Unauthorized: not authorized to perform: ec2:CreateFleet"


def vars_of(answer: StatusAnswer) -> dict[str, Any]:
    return {each.name: getattr(answer, each.name) for each in fields(answer)}


def a_refused_claim(pod: str) -> Json:
    """It was made for that pod."""
    claim, _ = a_managed_node()
    claim["metadata"] = {
        "name": "default-new",
        "labels": {names.NODE_POOL: "default"},
        "annotations": {names.PLANNED_PODS: pod},
    }
    reason, _, message = DENIED.partition(": ")
    launched = {"type": names.LAUNCHED, "status": "Unknown", "reason": reason, "message": message}
    claim["status"] = {"conditions": [{**launched, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    return claim


def sold_out(look: Look, seconds: float) -> Look:
    """Everything is short for so many seconds, and has been for two hours."""
    now = look.snapshot.now
    catalogues = {
        name: Catalogue(
            types=tuple(
                replace(
                    item,
                    offerings=tuple(
                        replace(o, available=False, short_since=now - 7200, short_until=now + seconds)
                        for o in item.offerings
                    ),
                )
                for item in catalogue.types
            )
        )
        for name, catalogue in look.snapshot.catalogues.items()
    }
    return replace(look, snapshot=replace(look.snapshot, catalogues=catalogues))


@pytest.mark.parametrize("width", [60, 120])
async def test_status_has_a_line_for_each_pool_that_something_is_short_for(tmp_path: Path, width: int) -> None:
    look = sold_out(await looked(a_world(tmp_path, a_ready_pool("ice"))), 150.0)

    answer = status_of(look)
    shown = status_text(ClusterStatus(cluster="demo", **vars_of(answer)), Screen(width=width))

    assert len(answer.shortages) == 1 and "NodePool ice: the cloud has run out of" in " ".join(shown.split())
    now = look.snapshot.now
    assert f"since {format_time(now - 7200)}; asked for again at {format_time(now + 150)} at" in answer.shortages[0]
    assert max(len(line) for line in shown.splitlines()) <= width


FULL = "no subnet of its EC2NodeClass has a free address there"


def without_addresses(look: Look) -> Look:
    """Every subnet is full."""
    catalogues = {
        name: Catalogue(
            types=tuple(
                replace(item, offerings=tuple(replace(o, available=False, closed=FULL) for o in item.offerings))
                for item in catalogue.types
            )
        )
        for name, catalogue in look.snapshot.catalogues.items()
    }
    return replace(look, snapshot=replace(look.snapshot, catalogues=catalogues))


async def test_subnets_without_addresses_are_named_wherever_somebody_asks_why_nothing_is_launched(
    tmp_path: Path,
) -> None:
    """PLC-60, PLC-124: "its own requirements" were the reason, which nobody could mend."""
    pools = a_ready_pool("web"), a_ready_pool("none")
    for pool, key, value in zip(pools, (names.ZONE, names.ARCH), ("test-zone-a", "sparc"), strict=True):
        only = {"key": key, "operator": "In", "values": [value]}
        pool["spec"]["template"]["spec"]["requirements"] = [only]
    look = without_addresses(await looked(a_world(tmp_path, *pools, pod_manifest("lone"))))
    where = f"{FULL}: on-demand in test-zone-a, spot in test-zone-a"

    answer, plan = explain_pod(look, "default/lone"), plan_now(look)
    placement = place(Index(look.snapshot, placement_settings(look.settings)))
    notices = {each.kind: each.message for each in placement_notices(look.snapshot, placement)}

    assert dict(answer.pools_left_out) == {
        "web": f"{where}; wider types or zones would help",
        "none": "its own requirements let no instance type through",
    }
    assert any(where in line for line in status_of(look).shortages)
    assert any(where in words for _, words in plan.pools_left_out)
    assert where in notices["Pod"] and any(FULL in each.change for each in answer.helps)


@pytest.mark.parametrize("why", ["sold out", "full", "none of the kind"])
async def test_values_that_are_too_few_only_now_are_named_with_what_they_lack(tmp_path: Path, why: str) -> None:
    """PLC-60: "the types that its requirements let through have too few values" sends people to requirements that are
    as they should be. Where they have too few whatever is to be had, that is said."""
    (tmp_path / "before").mkdir()
    pool, before = a_ready_pool("web"), await looked(a_world(tmp_path / "before", a_ready_pool("web")))
    (first, second, *_) = types = before.snapshot.catalogues["web"].types
    values = [first.name, "no-such-type" if why == "none of the kind" else second.name]
    only = {"key": names.INSTANCE_TYPE, "operator": "In", "values": values, "minValues": 2}
    pool["spec"]["template"]["spec"]["requirements"] = [only]
    look = await looked(a_world(tmp_path, pool, pod_manifest("lone")))
    out = sold_out(look, 150.0) if why != "full" else without_addresses(look)
    short = next(each for each in out.snapshot.catalogues["web"].types if each.name == second.name)
    catalogues = {"web": Catalogue(types=tuple(short if each.name == second.name else each for each in types))}
    look = replace(look, snapshot=replace(look.snapshot, catalogues=catalogues))
    few = f"of what can be had now {names.INSTANCE_TYPE} has 1 of 2 values that minValues asks for"
    lacks = FULL if why == "full" else f"the cloud has run out of {second.name}"

    answer = explain_pod(look, "default/lone")
    placement = place(Index(look.snapshot, placement_settings(look.settings)))
    notices = {each.kind: each.message for each in placement_notices(look.snapshot, placement)}

    [(_, words)] = answer.pools_left_out
    if why == "none of the kind":
        assert (
            words == "the instance types that its requirements let through have fewer values than its minValues ask for"
        )
        assert few not in notices["Pod"]
    else:
        assert words.startswith(f"{few}; {lacks}")
        assert f"{few}; {lacks}" in notices["Pod"] and lacks in notices["NodePool"]
        assert few not in notices["NodePool"]  # Karpenter's own words there, and what is short


async def test_a_pod_whose_only_pool_is_sold_out_has_an_event_that_says_so(tmp_path: Path) -> None:
    """PLC-60: as it has where subnets are full, or another type of the pool is too small."""
    look = sold_out(await looked(a_world(tmp_path, a_ready_pool("ice"), pod_manifest("lone"))), 150.0)

    placement = place(Index(look.snapshot, placement_settings(look.settings)))
    notices = {each.kind: each.message for each in placement_notices(look.snapshot, placement)}

    assert "the cloud has run out of" in notices["Pod"] and "the cloud has run out of" in notices["NodePool"]


async def test_a_pod_that_chooses_a_zone_without_addresses_is_told_so(tmp_path: Path) -> None:
    zone = "test-zone-a"
    look = await looked(a_world(tmp_path, a_ready_pool(), pod_manifest("lone", nodeSelector={names.ZONE: zone})))
    full = without_addresses(look).snapshot.catalogues["default"].types
    types = tuple(
        replace(
            item,
            offerings=tuple(
                new if zone in str(old.requirements) else old
                for old, new in zip(item.offerings, closed.offerings, strict=True)
            ),
        )
        for item, closed in zip(look.snapshot.catalogues["default"].types, full, strict=True)
    )
    look = replace(look, snapshot=replace(look.snapshot, catalogues={"default": Catalogue(types=types)}))

    [pool] = explain_pod(look, "default/lone").pools

    assert pool.conflict.startswith(f"{FULL}: on-demand in {zone}, spot in {zone}; requirements=")


async def test_a_shortage_that_is_over_is_none(tmp_path: Path) -> None:
    assert status_of(sold_out(await looked(a_world(tmp_path, a_ready_pool("ice"))), -1.0)).shortages == ()


async def test_a_refused_launch_needs_a_person_after_three_tries(tmp_path: Path) -> None:
    """Before that it may have been a blip of the cloud's. How many there were by then follows from the pauses."""
    policy = launching("demo")["retry_policy"]
    pauses = [policy.initial_interval.total_seconds() * policy.backoff_coefficient**i for i in range(3)]
    assert sum(pauses) + 3 * 4.0 < REFUSED_SECONDS < 2 * (sum(pauses) + 3 * 4.0), "calls of some seconds each"
    world = a_world(tmp_path, a_ready_pool())
    world.apply(a_refused_claim("of-nobody"))
    look = await looked(world)
    [claim] = look.snapshot.claims.values()

    def needing(age: float) -> list[str]:
        then = replace(look, snapshot=replace(look.snapshot, now=claim.created + age))
        return [need.about for need in status_of(then).needs_person]

    assert (needing(REFUSED_SECONDS - 1), needing(REFUSED_SECONDS + 1)) == ([], ["default-new"])


async def test_a_refused_launch_is_said_by_status_by_explain_pod_and_by_doctor(tmp_path: Path) -> None:
    """A right was taken away: the pods' node is not on its way."""
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web"))
    uid = world.objects("Pod")[0]["metadata"]["uid"]
    world.apply(a_refused_claim(uid))
    look = await looked(world)

    answer = status_of(replace(look, snapshot=replace(look.snapshot, now=look.snapshot.now + 60)))

    assert answer.under_way[0].progress == f"refused: {DENIED}"
    assert [need.about for need in answer.needs_person] == ["default-new"]
    assert DENIED in answer.needs_person[0].what
    assert explain_pod(look, "default/web").says == (
        f"a node for it is asked for, and its launch is refused: NodeClaim default-new: {DENIED}"
    )
    found = launches_check(look.snapshot)
    assert (found.verdict, DENIED in found.found) == ("warns", True)
