"""The document SCHEDULER_CONFIG (PLC-56)."""

import pytest
from pydantic import ValidationError

from dovetail.model.pods import SpreadConstraint
from dovetail.settings.deciding import disruption_settings, placement_settings
from dovetail.settings.scheduler_config import default_spread
from dovetail.settings.settings import Settings

ZONE = "topology.kubernetes.io/zone"
GOOD = f"""
podTopologySpread:
  defaultConstraints:
  - maxSkew: 2
    topologyKey: {ZONE}
    whenUnsatisfiable: ScheduleAnyway
    minDomains: 3
"""
READ = SpreadConstraint(
    topology_key=ZONE, max_skew=2, when_unsatisfiable="ScheduleAnyway", selector=None, min_domains=3
)


def one(**changes: object) -> str:
    fields = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **changes}
    return str({"podTopologySpread": {"defaultConstraints": [fields]}})


def test_a_good_document_becomes_constraints_without_a_selector() -> None:
    assert default_spread(GOOD) == (READ,)
    assert default_spread("") == default_spread("{}") == ()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (one(maxSkew=0), "maxSkew"),
        (one(topologyKey="no key"), "qualified"),
        (one(whenUnsatisfiable="Perhaps"), "whenUnsatisfiable"),
        (one(labelSelector={}), "labelSelector"),
        (one(matchLabelKeys=["a"]), "matchLabelKeys"),
        (one(typo=1), "typo"),
        ("podTopologySpread: [", "neither"),
        (GOOD + GOOD.split("defaultConstraints:\n")[1], "two constraints"),
    ],
)
def test_a_bad_document_is_refused_in_words(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        default_spread(text)


def test_a_bad_document_stops_the_process() -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"SCHEDULER_CONFIG": one(maxSkew=0)})


def test_both_engines_know_the_constraints() -> None:
    """PLC-58: simulations too."""
    settings = Settings.model_validate({"SCHEDULER_CONFIG": GOOD})
    assert placement_settings(settings).default_spread == disruption_settings(settings).default_spread == (READ,)
