"""What do the formulas of spec.kubelet come to for one instance type (W-24)?

Asked for the sizes of each type and by the validation of a class. maxPods is resolved first and sees the pods that the
type would take without it; the reserved amounts see the result. The trap avoided: with the gate off a formula counts
for nothing, here and in what machines are told alike; the class is not ready then (W-40b).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.aws.kubelet.formula_language import read_formula
from dovetail.adapters.aws.kubelet.formula_values import FormulaError
from dovetail.model.resources import QuantityError, parse_quantity

Json = dict[str, Any]

RESERVED: Final = ("kubeReserved", "systemReserved")
_MOST_PODS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What formulas may ask of a type."""

    instance_type: str
    vcpus: int
    memory_mib: int
    default_enis: int
    ips_per_eni: int
    pods: int  # that it takes without maxPods

    def variables(self, pods: int) -> Json:
        """By name."""
        return {
            "instance_type": self.instance_type,
            "vcpus": self.vcpus,
            "memory_mib": self.memory_mib,
            "default_enis": self.default_enis,
            "ips_per_eni": self.ips_per_eni,
            "max_pods": pods,
        }


def formulas_in(kubelet: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, formula), by field."""
    if isinstance(kubelet.get("maxPods"), str):
        yield "maxPods", str(kubelet["maxPods"])
    for field in RESERVED:
        for key, value in sorted((kubelet.get(field) or {}).items()):
            if not is_quantity(value):
                yield f"{field}.{key}", str(value)


def without_formulas(kubelet: Json) -> Json:
    """With the gate off: formulas are as if they were not there."""
    found = {key: value for key, value in kubelet.items() if key != "maxPods" or not isinstance(value, str)}
    for field in RESERVED:
        if found.get(field):
            found[field] = {key: value for key, value in found[field].items() if is_quantity(value)}
    return found


def resolved(kubelet: Json, machine: Machine) -> Json:
    """With numbers where formulas were. FormulaError names the field that has no result for this machine."""
    found, pods = dict(kubelet), machine.pods
    if isinstance(kubelet.get("maxPods"), str):
        pods = _result("maxPods", kubelet["maxPods"], machine.variables(machine.pods))
        if pods > _MOST_PODS:
            raise FormulaError(f"maxPods: {pods} is too large")
        found["maxPods"] = pods
    elif isinstance(kubelet.get("maxPods"), int):
        pods = kubelet["maxPods"]
    for field in RESERVED:
        if kubelet.get(field):
            amounts = kubelet[field].items()
            found[field] = {key: _amount((field, key), value, machine.variables(pods)) for key, value in amounts}
    return found


def _amount(place: tuple[str, str], value: Any, variables: Json) -> Any:
    """A quantity stays as it is written; a result gets the unit of its resource."""
    if is_quantity(value):
        return value
    field, key = place
    number = _result(f"{field}.{key}", str(value), variables)
    if key == "cpu":
        return f"{-(-number // 10) * 10}m"
    if key == "memory":
        return f"{-(-number // 16) * 16}Mi"
    return f"{number}Gi" if key == "ephemeral-storage" else str(number)


def _result(field: str, text: str, variables: Json) -> int:
    try:
        number = read_formula(text).result(variables)
    except FormulaError as error:
        raise FormulaError(f"{field}: {error}") from None
    if number < 0:
        raise FormulaError(f"{field}: {text} is {number} for {variables['instance_type']}, less than 0")
    return number


def is_quantity(value: Any) -> bool:
    """Whether Kubernetes would take it for an amount."""
    try:
        parse_quantity(str(value))
    except QuantityError:
        return False
    return True
