"""Processor seconds of what a person types to stop something: `python -m acceptance.bench.worker.orders`.

Each order is a process of its own against an API server that has a NodePool, a NodeClaim and a worker, and that answers
at once; with a cluster's name, so that the worker is asked which one it serves. By turns, beside `version`, which asks
nobody: the difference is what the order costs. The least and the median are printed, for the machine may be crowded.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from dovetail.model import names

TURNS: Final = 7
CLUSTER: Final = "prod-eu1"
ORDERS: Final = {
    "version --client": ["version", "--client"],
    "pause": ["pause", "all", "--reason", "a release"],
    "resume": ["resume", "all"],
    "replace": ["replace", "n1", "--reason", "a bad disk"],
    "cancel": ["cancel", "claim-n1", "--reason", "not now"],
}
_CLASS: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
_OWNER: Final = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "claim-n1", "uid": "u-2"}
_PREFIX: Final = "/api/v1/namespaces/dovetail/services/dovetail:http-api/proxy/api/v1/"


def objects() -> dict[str, Any]:
    """By path, as the API server has them."""
    labels = {names.NODE_POOL: "default", names.INSTANCE_TYPE: "m5.large"}
    claim: dict[str, Any] = {
        "metadata": {"name": "claim-n1", "uid": "u-2", "labels": labels},
        "spec": {"nodeClassRef": _CLASS, "requirements": []},
        "status": {"providerID": "aws:///a/i-1", "nodeName": "n1"},
    }
    node = {
        "metadata": {"name": "n1", "labels": labels, "ownerReferences": [_OWNER]},
        "spec": {"providerID": "aws:///a/i-1"},
    }
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"nodeClassRef": _CLASS}}}}
    found: dict[str, Any] = {
        "/api/v1/namespaces/kube-system": {"metadata": {"name": "kube-system"}},
        "/apis/karpenter.sh/v1/nodeclaims/claim-n1": claim,
        "/api/v1/nodes/n1": node,
        "/apis/karpenter.sh/v1/nodepools/default": pool,
    }
    for each in found.values():
        each["metadata"] = {"uid": "u", "resourceVersion": "1", **each["metadata"]}
    return found


def _handler(known: dict[str, Any]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, found = self._found()
            body = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_GET  # noqa: N815 - the server's names

        def _found(self) -> tuple[int, Any]:
            """What is written is not kept: each turn begins as the last one did."""
            if self.path.endswith("/selfsubjectreviews"):
                return 201, {"status": {"userInfo": {"username": "alice"}}}
            if self.path == f"{_PREFIX}trend":
                return 200, {"cluster": CLUSTER}
            found = known.get(self.path)
            return (200, found) if found is not None else (404, {"kind": "Status", "message": "not found"})

        def log_message(self, *_: object) -> None:
            """Into no log."""

    return Handler


def spent(command: list[str], environment: dict[str, str]) -> float:
    """Seconds of the processor of the whole command."""
    typed = [sys.executable, "-m", "dovetail.cli.main", *command]
    process = subprocess.Popen(typed, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{' '.join(command)}: {said}"
    return used.ru_utime + used.ru_stime


def main() -> None:
    """All orders, by turns."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(objects()))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    config = {
        "current-context": CLUSTER,
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": "c"}}],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config"
        file.write_text(json.dumps(config))
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("DOVETAIL_", "KUBE"))}
        environment |= {"KUBECONFIG": str(file), "CLUSTER_NAME": CLUSTER, "LOGNAME": "alice"}
        seconds: dict[str, list[float]] = {name: [] for name in ORDERS}
        for _ in range(TURNS):
            for name, command in ORDERS.items():
                seconds[name].append(spent(command, environment))
    server.shutdown()
    for name, found in seconds.items():
        print(f"{name:18} {min(found):.2f} s at least, {statistics.median(found):.2f} s in the median of {TURNS}")


if __name__ == "__main__":
    main()
