"""What is written on a Deployment, and what is tried before."""

from typing import Any

import pytest

from dovetail.adapters.kube.failures import Answer
from dovetail.adapters.kube.guards import MOVES, TRIED_FOR, Guard
from dovetail.adapters.kube.objects.deployments import KubeDeployments
from dovetail.adapters.kube.requests import Request
from dovetail.model import names
from dovetail.model.places.move_changes import GUARD, beginning, ending
from dovetail.ports.failures import Forbidden, Unreachable
from tests.model.move_worlds import NOW, a_deployment, a_roll_out

SAID = """deployments.apps "a" is forbidden: ValidatingAdmissionPolicy '{0}' with binding '{0}' denied request: no"""
REFUSED = {"kind": "Status", "reason": "Invalid", "message": SAID.format(GUARD)}


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
        (403, {"kind": "Status", "message": f'deployments.apps "{GUARD}" is forbidden: User "w" cannot patch it'}),
        (422, {"kind": "Status", "message": SAID.format("another")}),
        (422, {"kind": "Status", "message": f'Deployment.apps "{GUARD}" is invalid: metadata.labels: Invalid value'}),
        (409, {"kind": "Status", "message": "it has changed"}),
    ],
)
async def test_where_it_is_not_refused_by_the_policy_nothing_is_written(status: int, body: dict[str, Any]) -> None:
    """TRM-45."""
    server = Server(status, body)

    with pytest.raises(Forbidden, match=f"the admission policy {GUARD} does not refuse"):
        await KubeDeployments(server).annotate(a_deployment(), beginning(a_roll_out(), "n", NOW))

    assert server.kinds() == ["try"]


async def test_a_policy_that_leaves_a_namespace_out_is_believed_of_the_others_alone_and_looked_at_again() -> None:
    """TRM-45. What decisions are told: while any change has passed, nobody is moved."""
    server, clock = ByNamespace({"a"}), [0.0]
    guard = Guard(server, MOVES, lambda: clock[0])
    assert guard.stands and await guard.insist("a", "web")
    for _ in range(2):
        with pytest.raises(Forbidden, match="it was accepted"):
            await guard.insist("b", "web")
    assert (guard.stands, server.asked) == (False, ["a", "b"])

    server.refusing.add("b")
    await guard.look(("a", "web"))
    assert (guard.stands, server.asked[2:]) == (True, ["b", "a"])
    server.refusing.clear()
    server.answers = False
    await guard.look(("a", "web"))
    assert guard.stands, "a server that does not answer proves nothing"
    server.answers = True
    await guard.look(("a", "web"))
    assert not guard.stands


async def test_what_is_gone_proves_nothing_and_nothing_is_written() -> None:
    server = Server(404, {"kind": "Status", "reason": "NotFound", "message": f'deployments.apps "{GUARD}" not found'})
    deployments = KubeDeployments(server)
    for _ in range(2):
        assert await deployments.annotate(a_deployment(), beginning(a_roll_out(), "n", NOW)) is None
    assert server.kinds() == ["try", "try"]


class ByNamespace:
    """Refuses in some namespaces."""

    def __init__(self, refusing: set[str]) -> None:
        self.refusing, self.asked, self.answers = refusing, list[str](), True

    async def call(self, request: Request) -> Answer:
        namespace = request.path.split("/")[5]
        if not self.answers:
            raise Unreachable(request.subject, "no answer")
        self.asked.append(namespace)
        return Answer(status=422, body=REFUSED) if namespace in self.refusing else Answer(status=200)
