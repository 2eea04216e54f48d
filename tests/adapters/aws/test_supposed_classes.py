"""A class that is merely supposed answers as the same class once it is applied, and nothing is written to find out."""

from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.values.json import Json
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.test_drift import drift, launched
from worlds.aws import class_spec

REFERENCE = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
POOL = NodePool(name="web", template=ClaimTemplate(node_class=REFERENCE))
READS = ("Describe", "Get", "List")


def supposed(stage: Stage, **change: Any) -> Json:
    """The class that stands, with this spec."""
    raw = stage.classes.objects["default"]
    meta = {**raw["metadata"], "generation": raw["metadata"]["generation"] + 1, "resourceVersion": "999999"}
    return {**raw, "metadata": meta, "spec": class_spec(**change)}


async def foretold(stage: Stage, claim: NodeClaim, **change: Any) -> str:
    """The drift that the supposed class would mean; only reads reach AWS."""
    stands, begin = dict(stage.classes.objects), stage.server.control("GET", "ledger/last")

    catalogues = await stage.adapter.supposed_classes().with_classes([supposed(stage, **change)])
    reason = await catalogues.drift(claim)

    assert stage.classes.objects == stands
    made = {call["op"] for call in stage.server.calls(None, begin)}
    assert [operation for operation in made if not operation.startswith(READS)] == []
    return reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"tags": {"team": "blue"}}, "NodeClassDrift"),
        ({"role": "AnotherRole"}, "NodeClassDrift"),
        ({"securityGroupSelectorTerms": [{"id": "sg-01"}]}, "SecurityGroupDrift"),
        ({"subnetSelectorTerms": [{"id": "subnet-0b"}]}, "SubnetDrift"),
    ],
)
async def test_drift_is_foretold_as_it_then_is(stage: Stage, change: dict[str, Any], reason: str) -> None:
    claim = await launched(stage)

    assert await foretold(stage, claim, **change) == reason

    assert await drift(stage, claim) == ""
    await stage.with_class(**change)
    assert await drift(stage, claim) == reason


async def test_another_image_is_foretold(stage: Stage) -> None:
    claim = await launched(stage)
    terms = {"amiSelectorTerms": [{"id": "ami-0a12023e"}], "amiFamily": "AL2023"}

    assert await foretold(stage, claim, **terms) == "AMIDrift"


async def test_the_catalogue_of_a_supposed_class_has_its_zones_alone(stage: Stage) -> None:
    await stage.with_class()
    catalogues = await stage.adapter.supposed_classes().with_classes(
        [supposed(stage, subnetSelectorTerms=[{"id": "subnet-0b"}])]
    )

    found, stands = await catalogues.catalogue(POOL), await stage.adapter.catalogues.catalogue(POOL)

    def zones(types: Any) -> set[str]:
        each = (e for t in types for o in t.offerings if o.available for e in o.requirements if e.key == names.ZONE)
        return {value for expression in each for value in expression.values}

    assert len(zones(found.types)) == 1 < len(zones(stands.types))


async def test_a_class_that_resolves_to_nothing_would_not_be_ready(stage: Stage) -> None:
    await stage.with_class()

    catalogues = await stage.adapter.supposed_classes().with_classes(
        [supposed(stage, subnetSelectorTerms=[{"id": "subnet-absent"}])]
    )

    state = await catalogues.node_class(REFERENCE)
    assert (state.ready, (await stage.adapter.catalogues.node_class(REFERENCE)).ready) == ("False", "True")


async def test_a_new_class_can_be_supposed(stage: Stage) -> None:
    await stage.with_class()
    new = supposed(stage)
    new = {**new, "metadata": {"name": "other", "uid": "supposed-other", "generation": 1, "resourceVersion": "1"}}
    del new["status"]
    catalogues = await stage.adapter.supposed_classes().with_classes([new])

    reference = NodeClassRef(group=REFERENCE.group, kind=REFERENCE.kind, name="other")
    assert (await catalogues.node_class(reference)).ready == "True"
    assert (await catalogues.catalogue(NodePool(name="o", template=ClaimTemplate(node_class=reference)))).types
