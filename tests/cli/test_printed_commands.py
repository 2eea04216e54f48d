"""What is printed can be pasted: no shell takes a part of it for an operator, and what it names is there."""

import pytest

from tests.printed_commands import commands_in, fault_of, printed


def test_every_command_in_a_text_of_the_product_can_be_typed() -> None:
    found = list(printed())

    assert len(found) > 150, "they are found at all"
    assert [(file, fault) for file, command in found if (fault := fault_of(command))] == []


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("! n1  drain held  dovetail decide n1 force|wait 6h|cancel", ["dovetail decide n1 force|wait 6h|cancel"]),
        ("-> kubectl describe nodepools web: no node is made", ["kubectl describe nodepools web"]),
        (
            "`dovetail cancel n1 --reason …` or `dovetail history n1` says",
            ["dovetail cancel n1 --reason", "dovetail history n1"],
        ),
        ("look as dovetail doctor does", []),
    ],
)
def test_commands_are_found_where_they_stand(text: str, commands: list[str]) -> None:
    assert list(commands_in(text)) == commands


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("dovetail decide n1 force|wait 6h|cancel", "operator"),
        ("dovetail plan -f <FILE>", "operator"),
        ("kubectl get nodes; kubectl get pods", "operator"),
        ("kubectl describe ec2nodeclasss.karpenter.k8s.aws default", "no API server has"),
        ("dovetail decided n1 force", "no such command"),
        ("dovetail decide n1 perhaps", "invalid choice"),
        ("dovetail status --loudly", "unrecognized"),
        ("dovetail decide n1 'force|wait'", "invalid choice"),
        ("dovetail decide n1 wait 6h", ""),
        ("kubectl describe ec2nodeclass.karpenter.k8s.aws default", ""),
        ("kubectl -n shop describe pod cart-1", ""),
        ("dovetail history", ""),
    ],
)
def test_what_cannot_be_typed_is_told_from_what_can(command: str, why: str) -> None:
    assert why in fault_of(command) and bool(why) == bool(fault_of(command))
