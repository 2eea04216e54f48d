"""A validating webhook that allows everything and takes its time, as one that calls home does."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from dovetail.model.values.json import Json
from testbed.faults.certificates import Authority
from worlds.cluster.ground import Ground

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAME: Final = "slow.example.com"


@asynccontextmanager
async def slow_webhook(ground: Ground, seconds: float) -> AsyncIterator[list[str]]:
    """Asked within the block; the resources that it was asked about."""
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await request.read())
        asked.append(review["request"]["resource"]["resource"])
        await asyncio.sleep(seconds)
        review["response"] = {"uid": review["request"]["uid"], "allowed": True}
        return web.json_response(review)

    authority = Authority(ground.everything.folder / "webhook")
    pair = authority.server()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        made = await ground.api.post(CONFIGURATIONS, _configuration(url, authority.certificate.read_bytes()))
        assert made.status == 201, made.text
        yield asked
    finally:
        await ground.api.delete(f"{CONFIGURATIONS}/{NAME}")
        await asyncio.sleep(seconds)  # those that are being asked for get their answers
        await runner.cleanup()


def _configuration(url: str, authority: bytes) -> Json:
    claims = {"apiGroups": ["karpenter.sh"], "resources": ["nodeclaims", "nodeclaims/status"]}
    evictions = {"apiGroups": [""], "resources": ["pods/eviction"]}
    writes = ["CREATE", "UPDATE", "DELETE"]
    webhook = {
        "name": NAME,
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "rules": [{**rule, "apiVersions": ["*"], "operations": writes} for rule in (claims, evictions)],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 30,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }
