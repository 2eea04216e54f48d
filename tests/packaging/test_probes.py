"""What the rendered container listens on answers its probes, asked from outside the pod, as a kubelet asks.

The ports are served by the product's own server with the settings that it reads from the container's environment, in a
network of its own, once with IPv4 addresses alone and once with IPv6 addresses alone. The whole worker is asked the
same way in tests/cluster/test_installed.py.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.plane import TestbedUnavailable
from testbed.plane.helm import find_helm
from testbed.pod_network import FAMILIES, PodNetwork, can_make, inside
from tests.cluster.system.probes import KINDS, answers, url_of
from tests.packaging.charts import ROOT, Helm, pod_of, variables_of
from tests.unavailable import no_container, no_control_plane

SECONDS = 60
PROGRAM = """
import asyncio
from dovetail.settings.settings import read_settings
from dovetail.worker.http_server import PLAIN, Endpoint

async def well():
    return 200, PLAIN, "ok"

async def serve():
    settings = read_settings()
    for port in (settings.health_port, settings.metrics_port, settings.api_port):
        paths = dict.fromkeys(("/healthz", "/readyz", "/metrics"), well)
        await Endpoint(host=settings.listens_on, port=port, routes=paths).start()
    await asyncio.Event().wait()

asyncio.run(serve())
"""

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_port_of_the_container_answers_at_the_pods_address(tmp_path: Path, family: str) -> None:
    if why := can_make():
        no_container(why)
    try:
        helm = Helm(program=find_helm(lambda _line: None), folder=tmp_path)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    pod = pod_of(helm.rendered({"settings": {"clusterName": "blue"}}))
    [container] = pod["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    async with PodNetwork(family) as network:
        probes = [container[kind]["httpGet"] for kind in KINDS]
        scraped = {"port": "http-metrics", "path": "/metrics"}, {"port": "http-api", "path": "/metrics"}
        urls = [url_of(network.address, ports, asked) for asked in (*probes, *scraped)]
        command = [*inside(network.pod), sys.executable, "-c", PROGRAM]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables_of(pod)}
        serving = subprocess.Popen(command, env=environment, cwd=ROOT)
        try:
            deadline = time.monotonic() + SECONDS
            while unheard := [url for url in urls if not await asyncio.to_thread(answers, network, url, 5)]:
                assert serving.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, unheard
        finally:
            serving.kill()
            serving.wait()
