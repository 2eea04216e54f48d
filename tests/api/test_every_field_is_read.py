"""No field of a NodePool is accepted by the API and then forgotten by the parser.

A field is written three times: in the API's model, in the product's own model, and in the parser between them. A new
field without an example here fails, and so does one whose two examples the parser cannot distinguish.
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.api.karpenter.node_pool import NodePoolSpec
from dovetail.model.pools import NodePool
from tests.api.manifests import a_written_pool, changed

# Two values for every field, by its path below spec; [] is a list's item.
EXAMPLES: dict[str, tuple[Any, Any]] = {
    "template.metadata.labels": ({"team": "a"}, {"team": "b"}),
    "template.metadata.annotations": ({"note": "a"}, {"note": "b"}),
    "template.spec.nodeClassRef.group": ("karpenter.k8s.aws", "example.org"),
    "template.spec.nodeClassRef.kind": ("EC2NodeClass", "OtherNodeClass"),
    "template.spec.nodeClassRef.name": ("default", "other"),
    "template.spec.requirements[].key": ("zone", "size"),
    "template.spec.requirements[].operator": ("In", "NotIn"),
    "template.spec.requirements[].values": (["a"], ["b"]),
    "template.spec.requirements[].minValues": (1, 2),
    "template.spec.taints[].key": ("a", "b"),
    "template.spec.taints[].value": ("a", "b"),
    "template.spec.taints[].effect": ("NoSchedule", "NoExecute"),
    "template.spec.startupTaints[].key": ("a", "b"),
    "template.spec.startupTaints[].value": ("a", "b"),
    "template.spec.startupTaints[].effect": ("NoSchedule", "NoExecute"),
    "template.spec.terminationGracePeriod": ("30s", "60s"),
    "template.spec.expireAfter": ("24h", "Never"),
    "disruption.consolidateAfter": ("30s", "Never"),
    "disruption.consolidationPolicy": ("WhenEmpty", "WhenEmptyOrUnderutilized"),
    "disruption.budgets[].nodes": ("10%", "3"),
    "disruption.budgets[].reasons": (["Empty"], ["Drifted"]),
    "disruption.budgets[].schedule": ("@daily", "@hourly"),
    "disruption.budgets[].duration": ("10m", "1h"),
    "limits": ({"cpu": "10"}, {"cpu": "20"}),
    "weight": (1, 2),
    "replicas": (1, 2),
}
# No decision depends on these, so the product's model does not have them.
NOT_READ = {"template.spec.taints[].timeAdded", "template.spec.startupTaints[].timeAdded"}

ITEMS: dict[str, dict[str, Any]] = {
    "template.spec.requirements": {"key": "zone", "operator": "In", "values": ["a"]},
    "template.spec.taints": {"key": "a", "effect": "NoSchedule"},
    "template.spec.startupTaints": {"key": "a", "effect": "NoSchedule"},
    "disruption.budgets": {"nodes": "10%"},
}


def fields_of(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """The path of every field that has no fields of its own."""
    for field in model.model_fields.values():
        path, inner = f"{before}{field.alias}", _model_in(field.annotation)
        if inner is None:
            yield path
        else:
            model_type, is_list = inner
            yield from fields_of(model_type, f"{path}[]." if is_list else f"{path}.")


def _model_in(kind: Any) -> tuple[type[BaseModel], bool] | None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind, False
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _model_in(typing.get_args(kind)[0])
    if origin in (tuple, typing.Union, types.UnionType):
        found = [_model_in(each) for each in typing.get_args(kind) if each not in (Ellipsis, types.NoneType)]
        inner = next((each for each in found if each is not None), None)
        return None if inner is None else (inner[0], inner[1] or origin is tuple)
    return None


def parsed(path: str, value: Any) -> NodePool:
    """A pool that has that value there; without its hash, which would differ even if the value were not read."""
    whole, mark, last = path.partition("[].")
    item = changed(ITEMS[whole], last, value) if mark else value
    pool = changed(a_written_pool(), f"spec.{whole}", [item] if mark else item)
    return replace(parse_node_pool(pool), hash="")


def test_every_field_has_an_example() -> None:
    assert set(fields_of(NodePoolSpec)) == set(EXAMPLES) | NOT_READ


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_parser_distinguishes_two_values_of_a_field(path: str) -> None:
    one, other = EXAMPLES[path]
    assert parsed(path, one) != parsed(path, other)
