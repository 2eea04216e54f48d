"""The two profiles: Dovetail's decisions, and Karpenter's for comparison with recorded results."""

from dataclasses import fields

from dovetail.placement.profiles import DOVETAIL, KARPENTER, Profile
from dovetail.placement.settings import PlacementSettings


def test_the_profiles_differ_in_every_question() -> None:
    """A question on which they agree belongs into the engine."""
    alike = [field.name for field in fields(Profile) if getattr(DOVETAIL, field.name) == getattr(KARPENTER, field.name)]

    assert alike == []


def test_what_runs_decides_as_dovetail_does() -> None:
    """Nothing has to be set for it."""
    assert PlacementSettings().profile is DOVETAIL
