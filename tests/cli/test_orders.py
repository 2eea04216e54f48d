"""Orders over a kubeconfig alone: what is written, what is said, and how little is loaded for it."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from dovetail.cli.main import OTHER_CLUSTER, main
from dovetail.cli.top.web import Forwarder
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from tests.cli.fleet import HISTORY, PREFIX
from tests.cli.test_explain_node import a_managed_node
from tests.cli.test_start_up import LOADED
from tests.cli.worlds import a_ready_pool

# Of a worker, of a cloud and of Temporal; numpy and OpenTelemetry are those of the engines.
NOT_NEEDED = {"temporalio", "boto3", "botocore", "kubernetes", "aiohttp", "numpy", "opentelemetry", "pydantic"}
READ_BY_NO_ORDER = {"policies", "rollouts", "openings", "snapshot"}  # a third of an order's time, of dovetail.model
MOST_MODULES = 450  # about 300 are loaded; with the libraries of a worker they were 1,350

SYSTEM = "/api/v1/namespaces/kube-system"
CLAIM = "/apis/karpenter.sh/v1/nodeclaims/claim-n1"
OWN_KINDS = {
    "/apis/dovetail.sh/v1alpha1/disruptionpolicies": "DisruptionPolicy",
    "/apis/dovetail.sh/v1alpha1/freezes": "Freeze",
    "/apis/dovetail.sh/v1alpha1/noderollouts": "NodeRollout",
}
POOL = "/apis/karpenter.sh/v1/nodepools/default"


class ApiServer:
    """One that keeps objects by their paths, takes merge patches, and has a worker behind it that knows a history."""

    def __init__(self) -> None:
        claim, node = a_managed_node("n1")
        claim["metadata"]["uid"] = "u-2"
        node["metadata"]["ownerReferences"] = [
            {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "claim-n1", "uid": "u-2"}
        ]
        system = {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u-1"}}
        self.objects: dict[str, Json] = {SYSTEM: system, CLAIM: claim, "/api/v1/nodes/n1": node, POOL: a_ready_pool()}
        for each in self.objects.values():
            each["metadata"] = {"uid": "u", "resourceVersion": "1", **each["metadata"]}
        self.history: Json | None = None
        self.served = ""  # the name of the cluster that its workers serve

    def annotations(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.objects[path]["metadata"].get("annotations") or {}
        return found

    def answer(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        if method == "POST" and path.endswith("/selfsubjectreviews"):
            return 201, {"kind": "SelfSubjectReview", "status": {"userInfo": {"username": "alice@shop"}}}
        if path.startswith(f"{PREFIX}history/") and self.history is not None:
            return 200, self.history
        if path == f"{PREFIX}trend" and self.served:
            return 200, {"cluster": self.served}
        if (kind := OWN_KINDS.get(path.partition("?")[0])) is not None:
            return 200, {
                "kind": f"{kind}List",
                "apiVersion": "dovetail.sh/v1alpha1",
                "metadata": {"resourceVersion": "1"},
                "items": [],
            }
        found = self.objects.get(path)
        if found is None:
            return 404, {"kind": "Status", "reason": "NotFound", "message": "not found"}
        if method == "PATCH":
            meta = found["metadata"]
            changed = {**(meta.get("annotations") or {}), **body["metadata"].get("annotations", {})}
            meta["annotations"] = {key: value for key, value in changed.items() if value is not None}
            meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        return 200, found


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    served = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, found = served.answer(self.command, self.path, json.loads(sent) if sent else {})
            body = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_GET  # noqa: N815 - the server's names

        def log_message(self, *_: object) -> None:
            """Into no log."""

    server = Forwarder(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    config = {
        "current-context": "prod-eu1",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "prod-eu1", "context": {"cluster": "c"}}],
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    for name in ("CLUSTER_NAME", "DOVETAIL_WORLD", "DOVETAIL_CONTEXT", "DOVETAIL_SERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setenv("LOGNAME", "alice")
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


ORDERS = {
    "pause": ["pause", "all", "--drains", "--reason", "a release"],
    "resume": ["resume", "all"],
    "replace": ["replace", "n1", "--reason", "a bad disk"],
    "cancel": ["cancel", "n1", "--reason", "not now"],
}


@pytest.mark.parametrize("name", ["", "shop"])
@pytest.mark.parametrize("order", ORDERS)
def test_an_order_loads_what_it_takes_to_write_an_annotation_and_no_more(
    cluster: ApiServer, monkeypatch: pytest.MonkeyPatch, order: str, name: str
) -> None:
    """Also where the cluster's name is given: the workers behind the API server say whether it is theirs."""
    monkeypatch.setenv("CLUSTER_NAME", name)
    cluster.served = name
    typed = [
        sys.executable,
        "-c",
        LOADED.replace("main(sys.argv[1:])", "assert main(sys.argv[1:]) == 0"),
        *ORDERS[order],
    ]
    if order == "cancel":  # nobody takes the annotation off, and that is an answer too
        typed[2] = typed[2].replace(
            "import sys", "import sys\nfrom dovetail.cli.orders import cancelling\ncancelling.ANSWER_SECONDS = 0"
        )

    done = subprocess.run(typed, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    loaded = done.stdout.rpartition("loaded:")[2].split()
    reads_freezes = order == "resume"  # to say which one holds still
    assert {name.partition(".")[0] for name in loaded} & NOT_NEEDED == ({"pydantic"} if reads_freezes else set())
    if not reads_freezes:
        assert READ_BY_NO_ORDER & {name.removeprefix("dovetail.model.") for name in loaded} == set()
    assert "dovetail.cli.main" in loaded and len(loaded) < MOST_MODULES + 100 * reads_freezes


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_for_another_cluster_than_the_one_that_is_named_writes_nothing(
    cluster: ApiServer, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    cluster.served, before = "shop", json.dumps(cluster.objects)

    assert main([*ORDERS[order], "--cluster", "bakery"]) == OTHER_CLUSTER

    said = "the cluster is named bakery, and the workers of this kubeconfig serve shop"
    assert capsys.readouterr().err == f"dovetail: {said}\n"
    assert json.dumps(cluster.objects) == before


def test_orders_are_written_where_kubectl_would_write_them(
    cluster: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(ORDERS["pause"]) == 0
    assert "a release" in str(cluster.annotations(SYSTEM)) and "alice (alice@shop)" in str(cluster.annotations(SYSTEM))
    assert "cluster prod-eu1 (UID u-1 of kube-system)" in capsys.readouterr().out
    assert main(ORDERS["replace"]) == 0
    assert cluster.annotations(CLAIM)[names.REPLACE] == "a bad disk"
    assert main(["pause", "--pool", "default", "--reason", "x"]) == 0 and "x" in str(cluster.annotations(POOL))


def test_resume_all_ends_what_pause_all_began_drains_included(
    cluster: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(ORDERS["pause"]) == main(ORDERS["resume"]) == 0

    assert cluster.annotations(SYSTEM) == {}
    said = capsys.readouterr().out
    assert "all NodePools: resumed" in said and "stays" not in said


def test_a_replacement_that_was_asked_for_says_when_and_where_to_look(
    cluster: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(ORDERS["replace"]) == 0
    said = capsys.readouterr().out
    assert "as soon as budgets and pauses let the old one go" in said and "dovetail explain node NODE" in said
    assert main([*ORDERS["replace"], "--now"]) == 0
    assert "begins at the workers' next look" in capsys.readouterr().out


def test_a_cancel_that_is_too_late_says_when_the_node_went(
    cluster: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.objects[CLAIM]["metadata"]["deletionTimestamp"] = deleted = format_time(time.time() - 20)
    cluster.objects[CLAIM]["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    assert main(ORDERS["cancel"]) == 1
    said = capsys.readouterr().err
    assert (
        f"too late: its NodeClaim claim-n1 was deleted at {deleted}, 2" in said and "dovetail history claim-n1" in said
    )

    del cluster.objects[CLAIM], cluster.objects["/api/v1/nodes/n1"]
    ended = format_time(time.time() - 20)
    cluster.history = {**HISTORY, "stories": [{**HISTORY["stories"][0], "ended": ended}]}
    assert main(ORDERS["cancel"]) == 1
    said = capsys.readouterr().err
    assert f"there is no such Node or NodeClaim: it went at {ended}, 2" in said and "dovetail history n1" in said

    cluster.history = None
    assert main(ORDERS["cancel"]) == 1
    assert capsys.readouterr().err == "dovetail: n1: there is no such Node or NodeClaim\n"


def test_a_cancel_of_a_reboot_says_whether_it_is_too_late(
    cluster: ApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker answers at once, by a rest; after the boot id is written nothing is."""
    kept, answer = cluster.answer, ("300s", "9999999999/1/Empty/cancelled")
    cluster.objects[CLAIM]["metadata"]["annotations"] = {names.REBOOT_GRACE: answer[0]}

    def answered(method: str, path: str, body: Json) -> tuple[int, Json]:
        if method == "PATCH" and names.CANCEL in body["metadata"].get("annotations", {}):
            body = {"metadata": {"annotations": {names.REST: answer[1]}}}
        return kept(method, path, body)

    monkeypatch.setattr(cluster, "answer", answered)
    assert main(ORDERS["cancel"]) == 0
    assert "n1: its disruption is called off and undone; the node rests until" in capsys.readouterr().out

    cluster.annotations(CLAIM)[names.PRE_BOOT_ID] = "boot-1"
    assert main(ORDERS["cancel"]) == 1
    assert "n1: too late: its instance is being rebooted" in capsys.readouterr().err
    assert names.CANCEL not in cluster.annotations(CLAIM)


def test_a_server_that_refuses_is_one_line(cluster: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.objects.clear()
    assert main(["pause", "--pool", "default", "--reason", "x"]) == 1
    assert capsys.readouterr().err.startswith("dovetail: there is no Namespace kube-system")
