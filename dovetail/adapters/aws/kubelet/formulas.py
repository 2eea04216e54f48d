"""What the formulas of spec.kubelet evaluate to for one instance type (AWS-24).

maxPods is resolved first and sees the pods that the type would take without it; the reserved amounts see the result.
With the feature gate closed formulas are left out, both from sizes and from user data; the class is then not ready
(AWS-40).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dovetail.model.expressions.evaluation import ReadExpression, read_expression
from dovetail.model.expressions.types import type_of
from dovetail.model.expressions.values import ExpressionError
from dovetail.model.values.json import Json
from dovetail.model.values.resources import is_quantity

RESERVED: Final = ("kubeReserved", "systemReserved")
_VARIABLES: Final = {
    "vcpus": "int",
    "memory_mib": "int",
    "default_enis": "int",
    "ips_per_eni": "int",
    "max_pods": "int",
    "instance_type": "string",
}
_MOST_CHARACTERS: Final = 4096
_MOST_PODS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaInputs:
    """The facts about an instance type that formulas may use."""

    instance_type: str
    vcpus: int
    memory_mib: int
    default_enis: int
    ips_per_eni: int
    pods: int  # as many as it takes without maxPods

    def variables(self, pods: int) -> Json:
        return {
            "instance_type": self.instance_type,
            "vcpus": self.vcpus,
            "memory_mib": self.memory_mib,
            "default_enis": self.default_enis,
            "ips_per_eni": self.ips_per_eni,
            "max_pods": pods,
        }


def read_formula(text: str) -> ReadExpression:
    """Raises ExpressionError if it cannot be understood or is not a number."""
    if len(text) > _MOST_CHARACTERS:
        raise ExpressionError(f"longer than {_MOST_CHARACTERS} characters")
    formula = read_expression(text, tuple(_VARIABLES))
    kind = type_of(formula.tree, _VARIABLES)
    if kind not in ("int", "double"):
        raise ExpressionError(f"{text}: gives a {kind}, not a number")
    return formula


def result(formula: ReadExpression, variables: Json) -> int:
    """Its value, cut to a whole number."""
    found = formula.value(variables)
    if not math.isfinite(found):
        raise ExpressionError("the result is not finite")
    return int(found)


class WrittenFormula(NamedTuple):
    field: str
    text: str


def formulas_in(kubelet: Mapping[str, Any]) -> Iterator[WrittenFormula]:
    if isinstance(kubelet.get("maxPods"), str):
        yield WrittenFormula("maxPods", str(kubelet["maxPods"]))
    for field in RESERVED:
        for key, value in sorted((kubelet.get(field) or {}).items()):
            if not is_quantity(value):
                yield WrittenFormula(f"{field}.{key}", str(value))


def without_formulas(kubelet: Json) -> Json:
    """With the gate closed: formulas are ignored."""
    found = {key: value for key, value in kubelet.items() if key != "maxPods" or not isinstance(value, str)}
    for field in RESERVED:
        if found.get(field):
            found[field] = {key: value for key, value in found[field].items() if is_quantity(value)}
    return found


def resolved(kubelet: Json, inputs: FormulaInputs) -> Json:
    """With numbers in place of formulas. ExpressionError names the field that has no result for this type."""
    found, pods = dict(kubelet), inputs.pods
    if isinstance(kubelet.get("maxPods"), str):
        pods = _result("maxPods", kubelet["maxPods"], inputs.variables(inputs.pods))
        if pods > _MOST_PODS:
            raise ExpressionError(f"maxPods: {pods} is too large")
        found["maxPods"] = pods
    elif isinstance(kubelet.get("maxPods"), int):
        pods = kubelet["maxPods"]
    for field in RESERVED:
        if kubelet.get(field):
            amounts = kubelet[field].items()
            found[field] = {key: _amount(field, key, value, inputs.variables(pods)) for key, value in amounts}
    return found


def _amount(field: str, key: str, value: Any, variables: Json) -> Any:
    """A quantity stays as written; a result gets the unit of its resource."""
    if is_quantity(value):
        return value
    number = _result(f"{field}.{key}", str(value), variables)
    if key == "cpu":
        return f"{-(-number // 10) * 10}m"
    if key == "memory":
        return f"{-(-number // 16) * 16}Mi"
    return f"{number}Gi" if key == "ephemeral-storage" else str(number)


def _result(field: str, text: str, variables: Json) -> int:
    try:
        number = result(read_formula(text), variables)
    except ExpressionError as error:
        raise ExpressionError(f"{field}: {error}") from None
    if number < 0:
        raise ExpressionError(f"{field}: {text} is {number} for {variables['instance_type']}, less than 0")
    return number
