"""What is idle is deleted, and only that (AWS-85, AWS-111): upstream deletes templates after two minutes and makes them
again."""

from dovetail.adapters.aws.resources.instance_profiles import Profiles
from dovetail.adapters.aws.upkeep.clean_up import CleanUp
from testing.aws_worlds import a_claim
from tests.adapters.aws.conftest import Stage

HOUR = 3600.0


class Later:
    """The time, some hours ahead of the server's."""

    def __init__(self, stage: Stage) -> None:
        self.hours, self.start = 0.0, stage.adapter.clock()

    def __call__(self) -> float:
        return self.start + self.hours * HOUR


async def test_a_template_is_deleted_after_a_day_without_a_launch_and_not_before(stage: Stage) -> None:
    """AWS-85, decision 18: equal launches of a day cost one template."""
    await stage.with_class()
    await stage.launched(a_claim())
    adapter, later = stage.adapter, Later(stage)
    profiles = Profiles(adapter.calls, adapter.settings, later)
    clean_up = CleanUp(adapter.calls, adapter.settings, profiles, adapter.templates, later)
    used = frozenset({stage.classes.objects["default"]["status"]["instanceProfile"]})
    deleted = []
    for hours in (0.6, 12.0, 23.0, 25.0):
        later.hours = hours
        await clean_up.round(used)
        deleted.append(len(stage.calls("DeleteLaunchTemplate")))

    assert deleted[:3] == [0, 0, 0]
    assert deleted[3] == len(stage.calls("CreateLaunchTemplate")) > 0
    assert stage.calls("DeleteInstanceProfile") == []


async def test_an_instance_profile_that_no_class_names_is_deleted(stage: Stage) -> None:
    """AWS-111."""
    await stage.with_class()
    adapter, later = stage.adapter, Later(stage)
    profiles = Profiles(adapter.calls, adapter.settings, later)
    clean_up = CleanUp(adapter.calls, adapter.settings, profiles, adapter.templates, later)
    later.hours = 2.0

    await clean_up.round(frozenset())

    (gone,) = stage.calls("DeleteInstanceProfile")
    assert gone["input"]["InstanceProfileName"] == stage.classes.objects["default"]["status"]["instanceProfile"]


async def test_profiles_are_looked_through_every_half_hour(stage: Stage) -> None:
    """AWS-111."""
    await stage.with_class()
    adapter, later = stage.adapter, Later(stage)
    profiles = Profiles(adapter.calls, adapter.settings, later)
    clean_up = CleanUp(adapter.calls, adapter.settings, profiles, adapter.templates, later)
    looked = []
    for hours in (0.0, 0.45, 0.55, 0.95, 1.1):
        later.hours = hours
        await clean_up.round(frozenset({"all-are-used"}))
        looked.append(len(stage.calls("ListInstanceProfiles")))

    first, last = looked[0], looked[-1]
    assert (looked[1], looked[2] > first, looked[3] == looked[2], last > looked[3]) == (first, True, True, True)
