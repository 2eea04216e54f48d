"""deploy/crds is what the models say (API-1, API-2, AWS-1)."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dovetail.api import crds
from dovetail.api.kinds import KINDS
from dovetail.api.schema.structural_schema import structural_schema

FOLDER = Path(__file__).parents[2] / "deploy" / "crds"


def test_deploy_crds_is_what_the_models_say() -> None:
    stored = {path.name: path.read_text() for path in FOLDER.iterdir()}

    assert stored == crds.files(), "run `make crds`"


def test_writing_twice_writes_the_same(tmp_path: Path) -> None:
    crds.write(tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    crds.write(tmp_path)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def _by_kind() -> dict[str, Any]:
    return {kind.kind: crds.crd(kind) for kind in KINDS}


def test_every_kind_of_karpenters_is_cluster_wide_in_its_category_and_all_have_a_status() -> None:
    for kind, crd in _by_kind().items():
        (version,) = crd["spec"]["versions"]
        category = "dovetail" if crd["spec"]["group"] == "dovetail.sh" else "karpenter"
        theirs = ("Namespaced", ["autoscaling"]) if kind == "CapacityBuffer" else ("Cluster", [category])
        assert (crd["spec"]["scope"], crd["spec"]["names"].get("categories")) == theirs
        assert version["subresources"]["status"] == {}


def test_only_node_pools_can_be_scaled() -> None:
    scales = {kind: crd["spec"]["versions"][0]["subresources"].get("scale") for kind, crd in _by_kind().items()}

    assert scales == {
        "NodePool": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"},
        "NodeClaim": None,
        "NodeOverlay": None,
        "EC2NodeClass": None,
        "KWOKNodeClass": None,
        "CapacityBuffer": None,
        "DisruptionPolicy": None,
        "Freeze": None,
        "NodeRollout": None,
    }


def test_kubectl_shows_the_columns_that_people_know() -> None:
    shown = {}
    for kind, crd in _by_kind().items():
        columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        always = [column["name"] for column in columns if "priority" not in column]
        wide = [column["name"] for column in columns if column.get("priority") == 1]
        shown[kind] = (always, wide)

    assert shown == {
        "NodePool": (["NodeClass", "Nodes", "Ready", "Age"], ["Weight", "CPU", "Memory"]),
        "NodeClaim": (
            ["Type", "Capacity", "Zone", "Node", "Ready", "Age"],
            ["ImageID", "ID", "NodePool", "NodeClass", "Drifted"],
        ),
        "NodeOverlay": (["Ready", "Age"], ["Weight"]),
        "EC2NodeClass": (["Ready", "Age"], ["Role"]),
        "KWOKNodeClass": (["Ready", "Age"], []),
        "CapacityBuffer": (["Replicas", "Usable", "Provisioned", "Age"], ["Strategy"]),
        "DisruptionPolicy": (["Zone", "Ready", "Age"], ["NodePools"]),
        "Freeze": (["From", "Until", "Active", "Reason", "Ready", "Age"], []),
        "NodeRollout": (["Pool", "Step", "State", "Target", "Old", "Ready", "Age"], ["Intent"]),
    }


def test_only_a_kind_that_means_nothing_without_a_spec_requires_one() -> None:
    """KWK-1: Karpenter's own example of a KWOKNodeClass has none."""
    schemas = {kind: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind, crd in _by_kind().items()}

    assert [kind for kind, schema in schemas.items() if "required" not in schema] == ["KWOKNodeClass"]


def test_short_names() -> None:
    short = {kind: crd["spec"]["names"].get("shortNames") for kind, crd in _by_kind().items()}

    assert short == {
        "NodePool": None,
        "NodeClaim": None,
        "NodeOverlay": ["overlays"],
        "EC2NodeClass": ["ec2nc", "ec2ncs"],
        "KWOKNodeClass": ["kwoknc", "kwokncs"],
        "CapacityBuffer": ["cb"],
        "DisruptionPolicy": ["dp"],
        "Freeze": ["frz"],
        "NodeRollout": ["nro"],
    }


def test_a_keyword_without_a_place_in_a_structural_schema_is_an_error() -> None:
    class Odd(BaseModel):
        apart: dict[str, Any]
        ratio: float = 0.5

        model_config = {"json_schema_extra": {"patternProperties": {}}}

    with pytest.raises(ValueError, match="patternProperties"):
        structural_schema(Odd)
