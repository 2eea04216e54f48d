"""`python -m testbed.up start|stop --name NAME`: everything on real servers, a worker included.

Start waits until all parts are ready, prints what to type on standard error and one JSON line that says where
everything is; what it has started is written down before it waits, so that a stop finds it. Several run side by side,
each with its own folder and its own ports.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from dovetail.answers.failures import CommandFailed
from dovetail.cli.demo.temporal_server import TemporalServer, free_ports, start_temporal
from dovetail.model.values.json import Json
from testbed.cloud.server import CloudError, CloudServer
from testbed.node.nodes import stop_nodes
from testbed.plane import (
    ApiClient,
    ApiResponse,
    ControlPlane,
    PlaneError,
    PlaneSettings,
    PlaneState,
    TestbedUnavailable,
    find_binaries,
    read_state,
    stop_plane,
)
from testbed.plane.__main__ import FOLDER_VARIABLE
from testbed.plane.processes import ProcessIdentity, identify, stop_process
from testbed.service import kubelet_asks, make_service, network_plays
from testbed.temporal.chosen import environment_of, start_chosen
from testbed.temporal.server import stop_temporal

ROOT = Path(__file__).resolve().parents[1]
STATE = "up.json"
RIGHTS = ROOT / "deploy" / "kubernetes" / "rbac.yaml"  # a worker's
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTER = "dovetail"  # the name that the cloud's subnets and security groups are tagged with
WORKER_USER = "dovetail"
SHIPPED_USER = "system:serviceaccount:kube-system:dovetail"  # of whom the shipped policies speak
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICY_PATHS = {
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
}
READY_SECONDS = 90.0
STOP_SECONDS = 25.0  # a worker finishes what it has in hand

NODE_CLASS: Json = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": f"KarpenterNodeRole-{CLUSTER}",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": CLUSTER}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": CLUSTER}}],
    },
}


NODE_CLASS_REF: Json = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """Where all parts are."""

    folder: Path
    plane: PlaneState
    cloud: CloudServer
    temporal_address: str
    temporal_ui: str
    temporal_binary: str
    processes: dict[str, ProcessIdentity]
    environment: dict[str, str]  # a worker's
    url: str = ""  # of the worker that was started with it

    def worker_command(self) -> list[str]:
        """Starts another worker, in the environment above."""
        return [sys.executable, "-m", "dovetail.cli.main", "worker"]

    def start_worker(self, log_name: str = "worker.log", command: Sequence[str] = ()) -> "subprocess.Popen[bytes]":
        """Another worker, as a process of its own; `command` in place of the usual one."""
        with (self.folder / log_name).open("ab") as log:
            return subprocess.Popen(
                list(command) or self.worker_command(),
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def report(self) -> Json:
        """The one JSON line."""
        prefix = " ".join(f"{name}={value}" for name, value in sorted(self.environment.items()))
        pids = {name: process.pid for name, process in self.processes.items()}
        pids.update({name: process.pid for name, process in self.plane.processes})
        return {
            "folder": str(self.folder),
            "kubeconfig": str(self.plane.kubeconfig),
            "kubectl": str(self.plane.kubectl),
            "server": self.plane.server,
            "audit_log": str(self.plane.audit_log),
            "cloud_ledger": str(self.cloud.ledger),
            "cloud_control": f"{self.cloud.endpoint}/_dovetail/",
            "prices": self.cloud.control("GET", "prices"),
            "node_class": NODE_CLASS,
            "temporal_address": self.temporal_address,
            "temporal_binary": self.temporal_binary,
            "web_ui": self.temporal_ui,
            "worker_url": self.url,
            "aws_endpoint": self.cloud.endpoint,
            "cluster": CLUSTER,
            "pids": {**pids, **self.cloud.pids},
            "worker_environment": self.environment,
            "worker_command": f"cd {ROOT} && {prefix} {' '.join(self.worker_command())}",
        }


def folder_of(name: str) -> Path:
    """The folder of one set of servers."""
    return Path(os.environ.get(FOLDER_VARIABLE, ".dovetail")).resolve() / name


async def start(folder: Path, *, worker: bool = True, settings: PlaneSettings | None = None) -> Everything:
    """Start all parts in order; if one fails, those already started are stopped again."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / STATE).exists():
        await stop(folder)
    try:
        return await _start(folder, worker, settings)
    except BaseException:
        await stop(folder)
        raise


async def _start(folder: Path, worker: bool, settings: PlaneSettings | None) -> Everything:
    control_plane = ControlPlane(folder / "plane", find_binaries(_say), settings)
    plane = await control_plane.start()
    kubeconfig = control_plane.kubeconfig_for(WORKER_USER)
    await install(plane)
    cloud = CloudServer.start(folder / "cloud", kubeconfig=plane.kubeconfig, options=("--enforce-policies",))
    _write(folder, {})
    for old in folder.glob("temporal.db*"):
        old.unlink()
    temporal = await start_chosen(folder, _say)
    processes = {"temporal": _identity(temporal.process.pid)} if isinstance(temporal, TemporalServer) else {}
    _write(folder, processes)
    everything = Everything(
        folder=folder,
        plane=plane,
        cloud=cloud,
        temporal_address=temporal.address,
        temporal_ui=temporal.ui,
        temporal_binary=str(temporal.binary),
        processes=processes,
        environment={
            "CLUSTER_NAME": CLUSTER,
            "CLUSTER_ENDPOINT": plane.server,
            "KUBECONFIG": str(kubeconfig),
            **environment_of(temporal),
            "AWS_ENDPOINT_URL": cloud.endpoint,
            "AWS_REGION": "us-west-2",
            "INTERRUPTION_QUEUE": CLUSTER,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        },
    )
    return await _with_service(await with_worker(everything)) if worker else everything


async def with_worker(everything: Everything) -> Everything:
    """Start the worker that `stop` stops, in the environment given, and wait until it serves."""
    (port,) = free_ports(1)
    log = everything.folder / "worker.log"
    log.unlink(missing_ok=True)  # an earlier one's "serving" must not be taken for this one's
    more = {"METRICS_PORT": str(port), "HEALTH_PROBE_PORT": str(port), "DOVETAIL_TEMPORAL_UI": everything.temporal_ui}
    answering = replace(everything, environment={**everything.environment, **more})
    started = answering.start_worker()
    processes = {**everything.processes, "worker": _identity(started.pid)}
    _write(everything.folder, processes)
    await _worker_ready(log, started)
    return replace(everything, processes=processes, url=f"http://127.0.0.1:{port}")


async def _with_service(everything: Everything) -> Everything:
    """Create the workers' Service, and the process that leads its calls to the started worker; wait until it does."""
    async with ApiClient(everything.plane.kubeconfig, user_agent="dovetail-testbed") as api:
        await make_service(api)
        await kubelet_asks(api, everything.url)  # once: nobody plays a kubelet here for as long as it runs
    leading = [sys.executable, "-m", "testbed.service", str(everything.plane.folder), everything.url.rpartition(":")[2]]
    network = everything.start_worker("network.log", leading)
    processes = {**everything.processes, "network": _identity(network.pid)}
    _write(everything.folder, processes)
    await network_plays(everything.plane.folder, network)
    return replace(everything, processes=processes)


def lines_to_type(everything: Everything) -> list[str]:
    """For a person: how to look at it, and how to give it its first node."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"nodeClassRef": NODE_CLASS_REF, "requirements": []}}},
    }
    kubectl = everything.plane.kubectl
    return [
        "source .venv/bin/activate",
        f"export KUBECONFIG={everything.plane.kubeconfig}",
        f"{kubectl} apply -f - <<< '{json.dumps(NODE_CLASS)}'",
        f"{kubectl} apply -f - <<< '{json.dumps(pool)}'",
        f"{kubectl} create deployment web --image=web --replicas=3",
        "dovetail status",
        "dovetail top",
        "dovetail top --web",
    ]


async def install(plane: PlaneState) -> None:
    """Install our kinds, and the worker's rights."""
    async with ApiClient(plane.kubeconfig, user_agent="dovetail-testbed") as api:
        for file in sorted((ROOT / "deploy" / "crds").glob("*.yaml")):
            await _create(
                api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(file.read_text())
            )
        await give_rights(api, WORKER_USER, list(yaml.safe_load_all(RIGHTS.read_text())))
        shared = yaml.safe_load((RIGHTS.parent / "shortages.yaml").read_text())
        await _create(api, f"/api/v1/namespaces/{shared['metadata']['namespace']}/configmaps", shared)
        for file in sorted((ROOT / "deploy" / "crds").glob("*.yaml")):
            name = yaml.safe_load(file.read_text())["metadata"]["name"]
            await api.wait_for(f"{DEFINITIONS}/{name}", _established)


def _established(answer: ApiResponse) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def give_rights(api: ApiClient, user: str, given: list[Json]) -> None:
    """Create what a file of rights has and does not exist: roles, granted to that user, and the policies that keep the
    user to what they are for."""
    for body in given:
        if body["kind"] in POLICY_PATHS:
            await _create(api, POLICY_PATHS[body["kind"]], _concerning(body, user))
            continue
        await _create(api, _path(body), body)
        binding = _binding(body, user)
        await _create(api, _path(binding), binding)


def _concerning(policy: Json, user: str) -> Json:
    """A policy of the shipped identity for that one."""
    found: Json = json.loads(json.dumps(policy).replace(SHIPPED_USER, user))
    return found


def _binding(role: Json, user: str) -> Json:
    """Gives a role to a user."""
    return {
        "apiVersion": role["apiVersion"],
        "kind": f"{role['kind']}Binding",
        "metadata": {**role["metadata"], "name": f"{role['metadata']['name']}-{user}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def _path(body: Json) -> str:
    namespace = body["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/rbac.authorization.k8s.io/v1{scope}/{body['kind'].lower()}s"


async def _create(api: ApiClient, path: str, body: Json) -> None:
    answer = await api.post(path, body)
    if answer.status not in {201, 409}:
        raise PlaneError(f"{path}: {answer.status} {answer.text[:300]}")


async def _worker_ready(log: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until it reports that it serves."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        text = log.read_text() if log.exists() else ""
        if "serving cluster" in text:
            return
        if process.poll() is not None:
            raise CommandFailed(f"the worker ended with {process.returncode}: {text.strip().splitlines()[-1:]}")
        await asyncio.sleep(0.1)
    raise CommandFailed(f"the worker does not serve after {READY_SECONDS:.0f} s; see {log}")


async def stop(folder: Path) -> bool:
    """Stop all parts, the workers first. Whether there was anything."""
    state = folder / STATE
    known = json.loads(state.read_text()) if state.exists() else {}
    for name in ("worker", "network", "temporal"):
        if name in known:
            await stop_process(ProcessIdentity(**known[name]), STOP_SECONDS)
    if (folder / "cloud" / "pids.json").exists():
        CloudServer.at(folder / "cloud").stop()
        (folder / "cloud" / "pids.json").unlink()
    temporal = await stop_temporal(folder)
    nodes = await stop_nodes(folder)
    stopped = await stop_plane(folder / "plane")
    state.unlink(missing_ok=True)
    return stopped or nodes or temporal or bool(known)


async def lose_database(everything: Everything) -> Everything:
    """Lose Temporal's server and its database; another starts empty. The caller takes care of the workers."""
    await stop_process(everything.processes["temporal"], STOP_SECONDS)
    for old in everything.folder.glob("temporal*.db*"):
        old.unlink()
    return await _with_temporal(everything, {})


async def limit_temporal(everything: Everything, limits: Mapping[str, int]) -> Everything:
    """Restart Temporal's server at another address, with its database and these limits."""
    await stop_process(everything.processes["temporal"], STOP_SECONDS)
    return await _with_temporal(everything, limits)


async def start_temporal_again(everything: Everything) -> Everything:
    """At the same address and with its database, after it was killed."""
    return await _with_temporal(everything, {}, int(everything.temporal_address.rpartition(":")[2]))


async def _with_temporal(everything: Everything, limits: Mapping[str, int], port: int = 0) -> Everything:
    temporal = await start_temporal(everything.folder, limits=limits, port=port)
    processes = {**everything.processes, "temporal": _identity(temporal.process.pid)}
    _write(everything.folder, processes)
    return replace(
        everything,
        temporal_address=temporal.address,
        temporal_ui=temporal.ui,
        processes=processes,
        environment={**everything.environment, "TEMPORAL_ADDRESS": temporal.address},
    )


def _identity(pid: int) -> ProcessIdentity:
    found = identify(pid)
    if found is None:
        raise CommandFailed(f"process {pid} ended at once; see the logs")
    return found


def _write(folder: Path, processes: dict[str, ProcessIdentity]) -> None:
    content = {name: {"pid": p.pid, "began": p.began} for name, p in processes.items()}
    (folder / STATE).write_text(json.dumps(content) + "\n")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _command(asked: argparse.Namespace) -> int:
    folder = folder_of(asked.name)
    if asked.command == "stop":
        print("stopped" if await stop(folder) else f"nothing runs in {folder}")
        return 0
    if read_state(folder / "plane") is None and folder.exists():
        shutil.rmtree(folder / "cloud", ignore_errors=True)
    everything = await start(folder)
    for line in ("everything is up; to look at it:", *lines_to_type(everything), ""):
        _say(f"    {line}")
    if asked.output == "json":
        print(json.dumps(everything.report()))
    return 0


def main() -> int:
    """Parse and run; a part that does not come up is reported in one line."""
    parser = argparse.ArgumentParser(prog="python -m testbed.up", description="Everything on real servers.")
    parser.add_argument("command", choices=("start", "stop"))
    parser.add_argument("--name", default="default", help="sets of different names run side by side")
    outputs = ("json", "none")
    parser.add_argument("-o", "--output", choices=outputs, default="json", help="none: without the JSON line")
    try:
        return asyncio.run(_command(parser.parse_args()))
    except (PlaneError, TestbedUnavailable, CommandFailed, CloudError) as error:
        print(f"up: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
