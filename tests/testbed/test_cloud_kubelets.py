"""Instances and Nodes on a real control plane: joining, never joining, falling silent, being removed."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from testbed.cloud.server import CloudServer
from testbed.plane import ApiClient, ApiResponse, ControlPlane, TestbedUnavailable, find_binaries
from tests.testbed.aws_clients import Aws, launched
from tests.testbed.test_cloud_user_data import AL2023
from tests.unavailable import no_control_plane

pytestmark = pytest.mark.cluster
POOL = ("m5.large", "subnet-0a")
NODES = "/api/v1/nodes"


@pytest.fixture(scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[ControlPlane, Path]]:
    try:
        binaries = await asyncio.to_thread(find_binaries, print)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    running = ControlPlane(Path(tmp_path_factory.mktemp("plane")), binaries)
    state = await running.start()
    yield running, state.kubeconfig
    await running.stop()


@pytest.fixture(scope="module")
async def api(plane: tuple[ControlPlane, Path]) -> AsyncIterator[ApiClient]:
    async with ApiClient(plane[1]) as client:
        yield client


@pytest.fixture(scope="module")
async def joined_cloud(
    plane: tuple[ControlPlane, Path], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[CloudServer]:
    server = await asyncio.to_thread(
        CloudServer.start,
        Path(tmp_path_factory.mktemp("cloud")),
        kubeconfig=plane[1],
        world={"runSeconds": 0},
        kubelet_options=("--controller-period", "0.5"),
    )
    yield server
    await asyncio.to_thread(server.stop)


@pytest.fixture
async def aws(joined_cloud: CloudServer) -> Aws:
    """Without a reset: instances of a cluster that goes on must not be numbered anew."""
    clients = Aws(joined_cloud)
    clients.patch_world(neverJoin=False, bootSeconds=0, shutdownSeconds=1)
    names = [each["LaunchTemplateName"] for each in clients.ec2.describe_launch_templates()["LaunchTemplates"]]
    if not names:
        clients.template(UserData=base64.b64encode(AL2023.encode()).decode())
    return clients


def node_of(aws: Aws, instance_id: str) -> str:
    return next(f"{NODES}/{each['nodeName']}" for each in aws.server.instances() if each["id"] == instance_id)


def ready(node: dict[str, Any]) -> str:
    """The Ready condition's status; nothing where there is no Node (yet)."""
    conditions = node["status"].get("conditions", ()) if node.get("kind") == "Node" else ()
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")


async def test_a_running_instance_joins_as_a_ready_node(api: ApiClient, aws: Aws) -> None:
    (instance_id,) = launched(aws.fleet(POOL))

    node = (await api.wait_for(node_of(aws, instance_id), lambda answer: ready(answer.body) == "True")).body

    assert node["spec"]["providerID"] == f"aws:///us-west-2a/{instance_id}"
    taints = {each["key"]: each["effect"] for each in node["spec"]["taints"]}
    assert taints["karpenter.sh/unregistered"] == "NoExecute"
    assert node["metadata"]["labels"]["karpenter.sh/nodepool"] == "default"
    assert (node["status"]["capacity"]["pods"], node["status"]["allocatable"]["cpu"]) == ("42", "1800m")


async def test_instances_boot_as_long_as_the_world_says_and_some_never_join(api: ApiClient, aws: Aws) -> None:
    aws.patch_world(bootSeconds=1, neverJoin=[{"zone": "us-west-2b", "times": 1}])
    (lost,) = launched(aws.fleet(("m5.large", "subnet-0b")))
    (slow,) = launched(aws.fleet(POOL))

    at_once = (await api.get(node_of(aws, slow))).status
    await api.wait_for(node_of(aws, slow), lambda answer: answer.status == 200)

    assert at_once == 404
    # launched before the slow one with the same boot time, so it would be there by now
    assert (await api.get(node_of(aws, lost))).status == 404


async def test_the_kubelet_of_a_terminated_instance_falls_silent_and_its_node_is_removed(
    api: ApiClient, aws: Aws
) -> None:
    aws.patch_world(shutdownSeconds=3)
    (instance_id,) = launched(aws.fleet(POOL))
    path = node_of(aws, instance_id)
    await api.wait_for(path, lambda answer: ready(answer.body) == "True")

    aws.ec2.terminate_instances(InstanceIds=[instance_id])

    silent = await api.wait_for(
        path, lambda answer: answer.body["metadata"]["labels"]["dovetail.test/kubelet"] == "silent"
    )
    assert silent.status == 200  # it shuts down, so the Node is still there
    await api.wait_for(path, lambda answer: answer.status == 404, seconds=60)


async def test_the_kubelet_of_a_stopping_instance_goes_on_until_it_has_stopped(api: ApiClient, aws: Aws) -> None:
    (instance_id,) = launched(aws.fleet(POOL))
    (other_id,) = launched(aws.fleet(POOL))
    path, other = node_of(aws, instance_id), node_of(aws, other_id)
    for each in (path, other):
        await api.wait_for(each, lambda answer: ready(answer.body) == "True")

    def silent(answer: ApiResponse) -> bool:
        return bool(answer.body["metadata"]["labels"]["dovetail.test/kubelet"] == "silent")

    aws.server.control("PATCH", f"instances/{instance_id}", {"state": "stopping"})
    aws.server.control("PATCH", f"instances/{other_id}", {"state": "stopped"})
    await api.wait_for(other, silent)  # declared after it, so the first would be silent by now

    assert not silent(await api.get(path))
    aws.ec2.terminate_instances(InstanceIds=[instance_id])
    assert silent(await api.wait_for(path, silent))


async def test_the_node_of_a_running_instance_is_left_alone_though_it_is_not_ready(api: ApiClient, aws: Aws) -> None:
    """The node controller asks the cloud, not the kubelet."""
    (instance_id,) = launched(aws.fleet(POOL))
    (other_id,) = launched(aws.fleet(POOL))
    path, other = node_of(aws, instance_id), node_of(aws, other_id)
    for each in (path, other):
        await api.wait_for(each, lambda answer: ready(answer.body) == "True")
        await api.patch(each, {"metadata": {"labels": {"dovetail.test/kubelet": "silent"}}})

    aws.ec2.terminate_instances(InstanceIds=[other_id])
    await api.wait_for(other, lambda answer: answer.status == 404, seconds=60)

    node = (await api.wait_for(path, lambda answer: ready(answer.body) != "True", seconds=60)).body
    assert node["spec"]["providerID"].endswith(instance_id)


async def test_an_instance_that_booted_while_the_api_server_was_away_joins_when_it_is_back(
    plane: tuple[ControlPlane, Path], api: ApiClient, aws: Aws
) -> None:
    await plane[0].stop_part("kube-apiserver")
    (instance_id,) = launched(aws.fleet(POOL))
    log = aws.server.folder / "kubelets.log"
    said = ""
    async with asyncio.timeout(20):
        while "POST /api/v1/nodes" not in said:  # until it has tried in vain
            await asyncio.sleep(0.05)
            said = log.read_text(encoding="utf-8")

    await plane[0].start_part("kube-apiserver")

    await api.wait_for(node_of(aws, instance_id), lambda answer: ready(answer.body) == "True")
