"""Formulas in spec.kubelet (AWS-24): what they come to, what user data says, and what a class with a mistake says."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.kubelet.formulas import FormulaInputs, read_formula, resolved, result, without_formulas
from dovetail.model.expressions.values import ExpressionError
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from worlds.aws import ClassStore, a_claim_of_ec2, amd64, on_demand, one_of, open_adapter

M5_XLARGE = FormulaInputs(instance_type="m5.xlarge", vcpus=4, memory_mib=16384, default_enis=4, ips_per_eni=15, pods=58)
FACTS = M5_XLARGE.variables(58)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("vcpus * 2", 8),
        ("min(110, default_enis * (ips_per_eni - 1) + 2)", 58),
        ("max(vcpus, 7) - 1", 6),
        ("int(double(memory_mib) * 0.05)", 819),
        ("double(vcpus) * 0.9", 3),  # cut, not rounded
        ("-7 / 2", -3),  # towards zero, as CEL has it
        ("-7 % 2", -1),
        ("instance_type.startsWith('m5.') ? 10 : 20", 10),
        ("vcpus in [2, 4] && memory_mib > 1024 ? 1 : 0", 1),
        ("!(vcpus == 4) || false ? 1 : 2", 2),
        ('instance_type == "m5.xlarge" ? size(instance_type) : 0', 9),
        ("1 + 2 * 3 - 4", 3),
        ("0x10 + max_pods", 74),
    ],
)
def test_a_formula_has_the_value_that_cel_gives_it(text: str, value: int) -> None:
    assert result(read_formula(text), FACTS) == value


@pytest.mark.parametrize(
    "text",
    [
        "vcpus *",
        "vcpus * 0.5",  # CEL does not mix whole and floating numbers
        "cpus * 2",
        "instance_type",
        "vcpus > 2",
        "vcpus ? 1 : 2",
        "max(1, 2.0)",
        "__import__('os').getpid()",
        "vcpus 2",
        "'a",
        "(" * 60 + "1" + ")" * 60,
        "9223372036854775808",
        "",
    ],
)
def test_what_is_no_formula_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ExpressionError):
        read_formula(text)


@pytest.mark.parametrize("text", ["vcpus / 0", "vcpus % 0", "1.0 / 0.0", "9223372036854775807 + vcpus"])
def test_a_formula_without_a_result_is_refused_when_it_is_evaluated(text: str) -> None:
    formula = read_formula(text)

    with pytest.raises(ExpressionError):
        result(formula, FACTS)


def test_results_get_the_unit_of_their_resource_and_are_rounded_up_to_its_step() -> None:
    """AWS-24: cpu in millicores by 10, memory in Mi by 16, storage in Gi, process ids bare; quantities stay."""
    kubelet = {
        "maxPods": "max_pods * 2",
        "kubeReserved": {"cpu": "vcpus * 13 + 1", "memory": "11 * max_pods + 255", "ephemeral-storage": "1 + 1"},
        "systemReserved": {"cpu": "100m", "pid": "max_pods"},
    }

    assert resolved(kubelet, M5_XLARGE) == {
        "maxPods": 116,
        # max_pods is the resolved one here: 11 * 116 + 255 = 1531
        "kubeReserved": {"cpu": "60m", "memory": "1536Mi", "ephemeral-storage": "2Gi"},
        "systemReserved": {"cpu": "100m", "pid": "116"},
    }


@pytest.mark.parametrize("kubelet", [{"maxPods": "vcpus - 5"}, {"kubeReserved": {"cpu": "-1 * vcpus"}}])
def test_a_result_below_zero_is_an_error_that_names_field_and_type(kubelet: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError, match=r"(maxPods|kubeReserved\.cpu).*m5\.xlarge"):
        resolved(kubelet, M5_XLARGE)


def test_with_the_gate_off_formulas_are_as_if_they_were_not_there() -> None:
    kubelet = {"maxPods": "vcpus", "kubeReserved": {"cpu": "vcpus * 10", "memory": "1Gi"}, "podsPerCore": 3}

    assert without_formulas(kubelet) == {"kubeReserved": {"memory": "1Gi"}, "podsPerCore": 3}


@pytest.fixture
async def gated(aws_server: CloudServer, aws_calls: Calls) -> AsyncIterator[Stage]:
    """A stage whose adapter has the gate NodeClassCEL on."""
    aws_server.control("POST", "reset")
    classes = ClassStore()
    adapter = open_adapter(aws_server, classes, aws_calls, expressions=True)
    yield Stage(server=aws_server, classes=classes, adapter=adapter, since=aws_server.control("GET", "ledger/last"))
    await adapter.close()


async def test_nodes_get_the_numbers_of_their_own_type(gated: Stage) -> None:
    """AWS-83: types whose numbers differ do not share a template."""
    await gated.with_class(kubelet={"maxPods": "vcpus * 10", "kubeReserved": {"memory": "memory_mib / 32"}})
    types = one_of("node.kubernetes.io/instance-type", "m5.large", "m5.xlarge")

    instance = await gated.launched(a_claim_of_ec2(types, on_demand(), amd64()))

    (fleet,) = gated.calls("CreateFleet")[-1:]
    assert len(fleet["input"]["LaunchTemplateConfigs"]) == 2
    reserved = {}
    for call in gated.calls("CreateLaunchTemplate"):
        text = call["input"]["LaunchTemplateData"]["UserData"]
        body = text[text.index("apiVersion: node.eks.aws") :].partition("\n--")[0]
        config = yaml.safe_load(body)["spec"]["kubelet"]["config"]
        reserved[config["maxPods"]] = config["kubeReserved"]
    assert reserved[20] == {"memory": "256Mi"}
    assert reserved[40] == {"memory": "512Mi"}
    assert instance.capacity["pods"] == 20
    # 8Gi as the type has it, less the overhead, less 256Mi kept and 100Mi for evictions (AWS-54, AWS-61)
    assert instance.allocatable["memory"] == (7577 - 256 - 100) * 2**20


@pytest.mark.parametrize(
    ("kubelet", "reason"),
    [
        ({"maxPods": "vcpus +"}, "KubeletExpressionInvalid"),
        ({"systemReserved": {"cpu": "vcpus * 1.5"}}, "KubeletExpressionInvalid"),
        ({"maxPods": "vcpus - 1000"}, "KubeletExpressionEvaluationFailed"),
        ({"maxPods": "10 / (vcpus - 2)"}, "KubeletExpressionEvaluationFailed"),
    ],
)
async def test_a_formula_that_fails_is_a_condition(gated: Stage, kubelet: dict[str, Any], reason: str) -> None:
    """AWS-40: (b) when it cannot be read, (d) when it has no result for a type of the region."""
    await gated.with_class(kubelet=kubelet)

    assert gated.classes.condition("ValidationSucceeded") == ("False", reason)
    assert gated.classes.condition("Ready")[0] == "False"
