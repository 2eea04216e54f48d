"""The services' descriptions: cut down to what is called, and the same there as botocore's own."""

import re
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel

from dovetail.adapters.aws.service_models import CALLED, cut_down, service_models
from tests.adapters.aws.test_policy import IMPLIED, allowed

OPERATIONS = [(service, operation) for service, operations in CALLED.items() for operation in sorted(operations)]


def model(loader: Loader, service: str) -> ServiceModel:
    return ServiceModel(loader.load_service_model(service, "service-2"), service)


def described(shape: Any, above: tuple[str, ...] = ()) -> Any:
    """A shape with all that is below it, without its sentences."""
    if shape is None or shape.name in above:
        return shape and shape.name
    path = (*above, shape.name)
    below = {name: described(each, path) for name, each in getattr(shape, "members", {}).items()}
    parts = [described(getattr(shape, name), path) for name in ("member", "key", "value") if hasattr(shape, name)]
    settings = dict(shape.serialization)
    return shape.name, shape.type_name, settings, shape.metadata, below, parts


@pytest.fixture(scope="module")
def whole() -> Loader:
    return Loader()


@pytest.fixture(scope="module")
def small() -> Loader:
    return service_models()


@pytest.mark.parametrize(("service", "operation"), OPERATIONS)
def test_a_call_is_described_as_botocore_describes_it(
    whole: Loader, small: Loader, service: str, operation: str
) -> None:
    theirs, ours = (model(loader, service).operation_model(operation) for loader in (whole, small))
    assert ours.http == theirs.http
    assert described(ours.input_shape) == described(theirs.input_shape)
    assert described(ours.output_shape) == described(theirs.output_shape)
    assert [each.name for each in ours.error_shapes] == [each.name for each in theirs.error_shapes]


def test_the_calls_are_those_that_the_policies_allow() -> None:
    rights = {each for each in allowed() - IMPLIED if each.partition(":")[0] in CALLED}
    named = {f"{service}:{operation}" for service, operations in CALLED.items() for operation in operations}
    # Of the simulation: it is for who installs, where they may ask it.
    assert named - {"ec2:CreateTags", "iam:SimulatePrincipalPolicy"} == rights


@pytest.mark.parametrize("service", CALLED)
def test_nothing_else_is_kept(small: Loader, service: str) -> None:
    found = small.load_service_model(service, "service-2")
    assert set(found["operations"]) == CALLED[service]
    assert not re.search(r"'documentation': '", str(found["operations"]) + str(found["shapes"]))


def test_a_service_that_is_not_listed_is_described_in_full(whole: Loader, small: Loader) -> None:
    assert small.load_service_model("sts", "service-2") == whole.load_service_model("sts", "service-2")


def test_a_member_called_documentation_stays() -> None:
    shape = {"type": "structure", "members": {"documentation": {"shape": "Text", "documentation": "words"}}}
    text = {"type": "string"}
    description = {"operations": {"Ask": {"input": {"shape": "Asked"}}}, "shapes": {"Asked": shape, "Text": text}}
    kept = cut_down(description, frozenset({"Ask"}))["shapes"]
    assert kept == {"Asked": {"type": "structure", "members": {"documentation": {"shape": "Text"}}}, "Text": text}
