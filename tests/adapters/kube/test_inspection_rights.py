"""The rights that `doctor` asks for are those that the shipped roles grant: no more, no less."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.adapters.kube.inspection import (
    DELETION_COST_RIGHTS,
    MOVES_RIGHTS,
    OWN_RIGHTS,
    PLACES_RIGHTS,
    RIGHTS,
    name_of,
    rights_of_watched,
)
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS, DEVICE_KINDS, NODE_OVERLAY
from dovetail.ports.provider import Right
from dovetail.settings.providers import DEFAULT, PROVIDERS, provider_named

ROLES = Path(__file__).parents[3] / "deploy" / "kubernetes" / "rbac.yaml"


Single = tuple[str, str, str, str]  # group, resource, verb, the one object that it is granted to


def granted(kind: str, file: Path = ROLES) -> set[Single]:
    """What the role of that kind allows."""
    [role] = [found for found in yaml.safe_load_all(file.read_text()) if found["kind"] == kind]
    rules: list[dict[str, Any]] = role["rules"]
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def single(rights: tuple[Right, ...]) -> set[Single]:
    return {(group, resource, verb, name_of(resource, verb)) for group, resource, verbs in rights for verb in verbs}


def of_cloud(name: str) -> set[Single]:
    provider = provider_named(name)
    return single(provider.rights).union(*(single(rights_of_watched(kind.path)) for kind in provider.node_classes))


def test_the_cluster_role_grants_every_right_that_doctor_checks() -> None:
    asked = single(RIGHTS) | of_cloud(DEFAULT)
    for kind in (NODE_OVERLAY, *BUFFER_KINDS, *DEVICE_KINDS):
        asked |= single(rights_of_watched(kind.path))

    assert asked == granted("ClusterRole")


@pytest.mark.parametrize("name", sorted(PROVIDERS.keys() - {DEFAULT}))
def test_another_cloud_has_a_role_of_its_own_for_what_doctor_asks(name: str) -> None:
    assert of_cloud(name) == granted("ClusterRole", ROLES.parent / f"{name}.yaml")


def test_the_role_grants_what_doctor_asks_for_in_the_workers_namespace() -> None:
    assert single(OWN_RIGHTS) == granted("Role")


def test_what_the_policy_cost_asks_for_is_a_role_of_its_own() -> None:
    assert single(PLACES_RIGHTS) == granted("ClusterRole", ROLES.parent / "places.yaml")


def test_what_deletion_costs_ask_for_is_a_role_of_its_own() -> None:
    assert single(DELETION_COST_RIGHTS) == granted("ClusterRole", ROLES.parent / "deletion-costs.yaml")


def test_what_moves_ask_for_is_a_role_of_its_own() -> None:
    assert single(MOVES_RIGHTS) == granted("ClusterRole", ROLES.parent / "moves.yaml")


def test_every_kind_that_is_watched_is_among_the_rights_checked() -> None:
    looked_at = {resource for _, resource, verbs in RIGHTS if "watch" in verbs}

    assert {kind.path.rpartition("/")[2] for kind in CLUSTER_KINDS} <= looked_at
