"""The two profiles: Dovetail's decisions, and Karpenter's for comparison with recorded results."""

from dataclasses import asdict

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.placement.profiles import DOVETAIL
from dovetail.placement.settings import PlacementSettings


def test_the_profiles_differ_in_every_question() -> None:
    """A question on which they agree belongs into the engine."""
    ours, theirs = asdict(DOVETAIL), asdict(KARPENTER_PLACEMENT)
    assert [question for question in ours if ours[question] == theirs[question]] == []


def test_what_runs_decides_as_dovetail_does() -> None:
    """Nothing has to be set for it."""
    assert PlacementSettings().profile is DOVETAIL
