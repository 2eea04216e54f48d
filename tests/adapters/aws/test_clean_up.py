"""What is idle is deleted, and only that (AWS-85, AWS-111): upstream deletes templates after two minutes and makes them
again."""

import pytest

from dovetail.adapters.aws.resources.instance_profiles import Profiles
from dovetail.adapters.aws.upkeep.clean_up import CleanUp
from dovetail.ports.cloud import LaunchRefused
from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2

HOUR = 3600.0


class Later:
    """The time, some hours ahead of the server's."""

    def __init__(self, stage: Stage) -> None:
        self.hours, self.start = 0.0, stage.adapter.clock()

    def __call__(self) -> float:
        return self.start + self.hours * HOUR


def clean_up_of(stage: Stage, later: Later) -> CleanUp:
    adapter = stage.adapter
    return CleanUp(
        adapter.calls, adapter.settings, Profiles(adapter.calls, adapter.settings, later), adapter.templates, later
    )


def in_use(stage: Stage) -> frozenset[str]:
    return frozenset({stage.classes.objects["default"]["status"]["instanceProfile"]})


async def test_a_template_is_deleted_after_an_hour_without_a_launch_and_not_before(stage: Stage) -> None:
    """AWS-85, decision 18: equal launches of an hour cost one template, and those of labels that never come again do
    not fill the account's quota of five thousand."""
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    later = Later(stage)
    clean_up, deleted = clean_up_of(stage, later), []
    for hours in (0.6, 0.9, 1.2):
        later.hours = hours
        await clean_up.round(in_use(stage))
        deleted.append(len(stage.calls("DeleteLaunchTemplate")))

    assert deleted[:2] == [0, 0]
    assert deleted[2] == len(stage.calls("CreateLaunchTemplate")) > 0
    assert stage.calls("DeleteInstanceProfile") == []


async def test_where_the_account_may_have_no_more_templates_idle_ones_make_room_at_once(stage: Stage) -> None:
    """AWS-85: the quota is that of all programs of the account, and no launch would succeed before the next round."""
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    later = Later(stage)
    clean_up = clean_up_of(stage, later)
    later.hours = 0.2
    await clean_up.round(in_use(stage))
    before = len(stage.calls("DeleteLaunchTemplate"))
    stage.patch(mostTemplates=len(stage.calls("CreateLaunchTemplate")))
    labels = {"karpenter.sh/nodepool": "default", "team.example/job": "job-1"}

    refused = await stage.launch(a_claim_of_ec2(name="job-1", labels=labels))
    await clean_up.round(in_use(stage))

    assert isinstance(refused, LaunchRefused)
    assert (before, len(stage.calls("DeleteLaunchTemplate")) > 0) == (0, True)
    await stage.launched(a_claim_of_ec2(name="job-1", labels=labels))


async def test_a_round_deletes_a_hundred_templates_at_most_and_goes_on_a_minute_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-85: classes are not kept meanwhile, and EC2 takes five of these calls a second."""
    monkeypatch.setattr("dovetail.adapters.aws.upkeep.clean_up._MOST", 1)
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    await stage.launched(
        a_claim_of_ec2(name="job-1", labels={"karpenter.sh/nodepool": "default", "team.example/job": "1"})
    )
    made = len(stage.calls("CreateLaunchTemplate"))
    later, deleted = Later(stage), []
    clean_up = clean_up_of(stage, later)
    for hours in (1.2, 1.21, 1.22, 1.24):
        later.hours = hours
        await clean_up.round(in_use(stage))
        deleted.append(len(stage.calls("DeleteLaunchTemplate")))

    assert made > 2 and deleted == [1, 1, 2, 3]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "operation",
    ["ListInstanceProfiles", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile", "GetInstanceProfile"],
)
async def test_where_profiles_may_not_be_deleted_idle_templates_are_all_the_same(
    stage: Stage, operation: str, full: bool
) -> None:
    """AWS-85, AWS-111: an account that may have no more templates launches nothing."""
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    made = len(stage.calls("CreateLaunchTemplate"))
    later = Later(stage)
    clean_up = clean_up_of(stage, later)
    later.hours, stage.adapter.templates.full = 1.2, full
    stage.patch(fail=[{"op": operation, "code": "AccessDenied", "status": 403}])

    await clean_up.round(frozenset())

    assert len(stage.calls("DeleteLaunchTemplate")) == made > 0
    assert not stage.adapter.templates.full


async def test_a_template_that_may_not_be_deleted_holds_up_no_other_and_is_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-85: that the account may have no more of them is forgotten only once one is gone."""
    monkeypatch.setattr("dovetail.adapters.aws.upkeep.clean_up._MOST", 1)
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    made = len(stage.calls("CreateLaunchTemplate"))
    later, deleted = Later(stage), []
    clean_up = clean_up_of(stage, later)
    stage.adapter.templates.full = True
    stage.patch(fail=[{"op": "DeleteLaunchTemplate", "code": "AccessDenied", "status": 403, "times": 1}])
    for hours in (1.2, 1.22, 1.24, 1.26, 1.75):
        later.hours = hours
        await clean_up.round(in_use(stage))
        deleted.append((len(stage.calls("DeleteLaunchTemplate")), stage.adapter.templates.full))

    assert made == 3 and deleted == [(1, True), (2, True), (3, False), (3, False), (4, False)]
    assert await stage.adapter.calls.every("ec2", "DescribeLaunchTemplates", "LaunchTemplates") == []


async def test_a_deleted_class_stays_while_something_of_it_may_not_be_deleted_and_the_rest_goes(stage: Stage) -> None:
    """AWS-46."""
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    made = len(stage.calls("CreateLaunchTemplate"))
    stage.patch(
        fail=[
            {"op": "DeleteLaunchTemplate", "code": "AccessDenied", "status": 403, "times": 1},
            {"op": "DeleteInstanceProfile", "code": "AccessDenied", "status": 403, "times": 1},
        ]
    )
    stage.classes.delete()

    await stage.upkeep.keep()

    assert "default" in stage.classes.objects
    assert len(stage.calls("DeleteLaunchTemplate")) == made > 1
    assert len(stage.calls("DeleteInstanceProfile")) > 0
    left = await stage.adapter.calls.every("ec2", "DescribeLaunchTemplates", "LaunchTemplates")
    assert len(left) == 1


async def test_while_a_class_cannot_be_read_profiles_stay_and_idle_templates_go(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-85, AWS-111: what an unreadable class uses is unknown; of templates it does not matter."""
    await stage.with_class()
    await stage.launched(a_claim_of_ec2())
    made = len(stage.calls("CreateLaunchTemplate"))
    later = Later(stage)
    monkeypatch.setattr(stage.upkeep._parts.clean_up, "_clock", later)
    stage.classes.apply("odd", amiSelectorTerms="none at all")
    later.hours = 1.2

    await stage.upkeep.keep()

    assert len(stage.calls("DeleteLaunchTemplate")) == made > 0
    assert stage.calls("ListInstanceProfiles") == []


async def test_an_instance_profile_that_no_class_names_is_deleted(stage: Stage) -> None:
    """AWS-111."""
    await stage.with_class()
    later = Later(stage)
    clean_up = clean_up_of(stage, later)
    later.hours = 2.0

    await clean_up.round(frozenset())

    (gone,) = stage.calls("DeleteInstanceProfile")
    assert gone["input"]["InstanceProfileName"] == stage.classes.objects["default"]["status"]["instanceProfile"]


async def test_profiles_are_looked_through_every_half_hour(stage: Stage) -> None:
    """AWS-111."""
    await stage.with_class()
    later = Later(stage)
    clean_up = clean_up_of(stage, later)
    looked = []
    for hours in (0.0, 0.45, 0.55, 0.95, 1.1):
        later.hours = hours
        await clean_up.round(frozenset({"all-are-used"}))
        looked.append(len(stage.calls("ListInstanceProfiles")))

    first, last = looked[0], looked[-1]
    assert (looked[1], looked[2] > first, looked[3] == looked[2], last > looked[3]) == (first, True, True, True)
