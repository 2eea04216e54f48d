"""The health checks for Argo CD and Flux: what they say of a NodePool and of an EC2NodeClass.

Argo CD's are Lua and are played. Flux's are CEL: of that language they use a list's `exists`, comparisons and `&&`,
which are read here as Python says them.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import lupa.lua51
import pytest
import yaml

from dovetail.model.values.json import Json

GITOPS: Final = Path("deploy/gitops")
KINDS: Final = ("karpenter.sh_NodePool", "karpenter.k8s.aws_EC2NodeClass")


def an_object(*conditions: Json) -> Json:
    """At its third generation."""
    ready: Json = {"type": "Ready", "status": "True", "reason": "Ready", "observedGeneration": 3}
    return {"metadata": {"generation": 3}, "status": {"conditions": [ready, *conditions]}}


def said(status: str, reason: str, generation: int = 3) -> Json:
    return {
        "type": "NodesUpToDate",
        "status": status,
        "reason": reason,
        "message": "14/21 nodes are up to date",
        "observedGeneration": generation,
    }


CASES: Final = (
    (an_object(), "Progressing"),
    (an_object(said("True", "NodesUpToDate")), "Healthy"),
    (an_object(said("True", "NodesUpToDate", generation=2)), "Progressing"),
    (an_object(said("False", "RolloutInProgress")), "Progressing"),
    (an_object(said("False", "RolloutBlocked")), "Degraded"),
    (an_object(said("False", "RolloutBlocked", generation=2)), "Progressing"),
)


def argo(kind: str, body: Json) -> Any:
    """What the check for that kind answers; Argo CD plays it with Lua 5.1."""
    checks = yaml.safe_load((GITOPS / "argo-cd.yaml").read_text())["data"]
    lua = lupa.lua51.LuaRuntime(register_eval=False, register_builtins=False)
    lua.globals().obj = lua.table_from(body, recursive=True)
    return lua.execute(checks[f"resource.customizations.health.{kind}"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("body", "health"), CASES)
def test_argo_cd_waits_until_a_change_has_reached_every_node(kind: str, body: Json, health: str) -> None:
    assert argo(kind, body)["status"] == health


@pytest.mark.parametrize("kind", KINDS)
def test_argo_cd_shows_how_far_it_is_and_waits_for_an_object_without_a_status(kind: str) -> None:
    assert argo(kind, an_object(said("False", "RolloutInProgress")))["message"] == "14/21 nodes are up to date"
    assert argo(kind, {"metadata": {"generation": 1}})["status"] == "Progressing"


def as_objects(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**{key: as_objects(each) for key, each in value.items()})
    return [as_objects(each) for each in value] if isinstance(value, list) else value


def holds(expression: str, body: Json) -> bool:
    """What the expression says of the object."""
    parts = re.fullmatch(r"([\w.]+)\.exists\((\w+), ([^()|!]+)\)", expression.strip())
    assert parts is not None, expression
    listed, name, condition = parts.groups()
    given = {key: as_objects(value) for key, value in body.items()}
    comparison = condition.replace("&&", "and")
    return bool(eval(f"any({comparison} for {name} in {listed})", {"__builtins__": {"any": any}, **given}))


@pytest.mark.parametrize("kind", ["NodePool", "EC2NodeClass"])
@pytest.mark.parametrize(("body", "health"), CASES)
def test_flux_waits_until_a_change_has_reached_every_node(kind: str, body: Json, health: str) -> None:
    """What is neither current nor failed is in progress."""
    spec = yaml.safe_load((GITOPS / "flux.yaml").read_text())["spec"]
    [check] = [each for each in spec["healthCheckExprs"] if each["kind"] == kind]
    found = {word for word in ("current", "failed") if holds(check[word], body)}
    assert found == {"Healthy": {"current"}, "Degraded": {"failed"}, "Progressing": set()}[health]
