"""The rights that `doctor` asks for are granted by the cluster role that is shipped."""

from pathlib import Path
from typing import Any

import yaml

from dovetail.adapters.kube.inspection import RIGHTS
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS

ROLE = Path(__file__).parents[3] / "deploy" / "kubernetes" / "rbac.yaml"


def granted(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def test_the_cluster_role_grants_every_right_that_doctor_checks() -> None:
    role = next(iter(yaml.safe_load_all(ROLE.read_text())))

    asked = {(group, resource, verb) for group, resource, verbs in RIGHTS for verb in verbs}

    assert asked - granted(role["rules"]) == set()


def test_every_kind_that_is_watched_is_among_the_rights_checked() -> None:
    looked_at = {resource for _, resource, verbs in RIGHTS if "watch" in verbs}

    assert {kind.path.rpartition("/")[2] for kind in CLUSTER_KINDS} <= looked_at
