"""What is written on a Deployment, and what is tried before."""

from typing import Any

import pytest

from dovetail.adapters.kube.failures import Answer
from dovetail.adapters.kube.objects.deployments import TRIED_FOR, KubeDeployments
from dovetail.adapters.kube.requests import Request
from dovetail.model import names
from dovetail.model.places.move_changes import GUARD, beginning, ending
from dovetail.ports.failures import Refused
from tests.model.move_worlds import NOW, a_deployment, a_roll_out

REFUSED = {"kind": "Status", "message": f"ValidatingAdmissionPolicy '{GUARD}' with binding '{GUARD}' denied request"}


class Server:
    """Answers each dry run as it was told to, and takes every other change."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.answer, self.asked = Answer(status=status, body=body), list[Request]()

    async def call(self, request: Request) -> Answer:
        self.asked.append(request)
        if request.query:
            return request.checked(self.answer)
        meta = {"name": "ledger", "namespace": "apps", "uid": "uid-ledger", "resourceVersion": "8", "generation": 5}
        return Answer(status=200, body={"metadata": meta, "spec": {"template": {}}})

    def kinds(self) -> list[str]:
        return ["try" if request.query else "write" for request in self.asked]


async def test_a_move_is_begun_only_where_another_change_is_refused() -> None:
    """TRM-45. It is tried again after a while, and not before a move is ended."""
    server, clock = Server(422, REFUSED), [0.0]
    deployments = KubeDeployments(server, lambda: clock[0])

    await deployments.annotate(a_deployment(), ending())
    for _ in range(2):
        await deployments.annotate(a_deployment(), beginning(a_roll_out(), "n", NOW))
    clock[0] = TRIED_FOR
    await deployments.annotate(a_deployment(), beginning(a_roll_out(), "n", NOW))

    assert server.kinds() == ["write", "try", "write", "write", "try", "write"]
    tried, written = server.asked[1], server.asked[2]
    assert tried.path == written.path == "/apis/apps/v1/namespaces/apps/deployments/ledger"
    assert tried.query == {"dryRun": "All"} and names.MOVED not in str(tried.body)
    assert written.body["spec"] == {"template": {"metadata": {"annotations": {names.MOVED: "a"}}}}
    assert written.body["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"kind": "Deployment"}),  # the policy concerns another identity
        (403, {"kind": "Status", "message": "deployments is forbidden"}),
        (422, {"kind": "Status", "message": "another policy"}),
    ],
)
async def test_where_it_is_not_refused_by_the_policy_nothing_is_written(status: int, body: dict[str, Any]) -> None:
    """TRM-45."""
    server = Server(status, body)

    with pytest.raises(Refused, match=GUARD):
        await KubeDeployments(server).annotate(a_deployment(), beginning(a_roll_out(), "n", NOW))

    assert server.kinds() == ["try"]
