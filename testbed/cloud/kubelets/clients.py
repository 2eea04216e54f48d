"""Two small clients over plain HTTP(S): the API server and the cloud, as the kubelets reach them.

The kubeconfig's certificate is used as it is; a user agent of our own keeps these calls apart from the product's in
the audit log.
"""

import base64
import json
import ssl
import tempfile
from pathlib import Path

import urllib3
import yaml

from testbed.cloud.json_object import Json

AGENT = "dovetail-testbed-kubelets"
STRATEGIC = "application/strategic-merge-patch+json"


class UnreachableError(Exception):
    """No answer, or one that only another try can change."""


def _inline(section: Json, key: str) -> bytes:
    if f"{key}-data" in section:
        return base64.b64decode(section[f"{key}-data"])
    return Path(section[key]).read_bytes()


def _context(cluster: Json, user: Json) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=_inline(cluster, "certificate-authority").decode())
    if "client-certificate-data" in user or "client-certificate" in user:
        with tempfile.NamedTemporaryFile() as pair:  # the ssl module takes a certificate from a file only
            pair.write(_inline(user, "client-certificate") + b"\n" + _inline(user, "client-key"))
            pair.flush()
            context.load_cert_chain(pair.name)
    return context


class Cluster:
    """The API server of a kubeconfig's current context."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        named = {each["name"]: each["context"] for each in config["contexts"]}[config["current-context"]]
        cluster = {each["name"]: each["cluster"] for each in config["clusters"]}[named["cluster"]]
        user = {each["name"]: each["user"] for each in config["users"]}[named["user"]]
        self._server = cluster["server"].rstrip("/")
        self._headers = {"User-Agent": AGENT, "Accept": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._pool = urllib3.PoolManager(ssl_context=_context(cluster, user), maxsize=4)

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> tuple[int, Json]:
        """One request: status and object; server errors and broken connections are UnreachableError."""
        try:
            answer = self._pool.request(
                method,
                self._server + path,
                body=None if body is None else json.dumps(body),
                headers={**self._headers, "Content-Type": kind},
                timeout=30,
                retries=False,
            )
        except urllib3.exceptions.HTTPError as broken:
            raise UnreachableError(f"{method} {path}: {broken}") from broken
        if answer.status >= 500 or answer.status == 429:
            raise UnreachableError(f"{method} {path}: {answer.status} {answer.data[:200]!r}")
        found: Json = json.loads(answer.data) if answer.data else {}
        return answer.status, found


class CloudControl:
    """The control API of the AWS server."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._pool = urllib3.PoolManager(maxsize=2)

    def ask(self, path: str) -> Json:
        """One GET."""
        try:
            answer = self._pool.request("GET", f"{self._endpoint}/_dovetail/{path}", timeout=60, retries=False)
        except urllib3.exceptions.HTTPError as broken:
            raise UnreachableError(f"cloud {path}: {broken}") from broken
        if answer.status != 200:
            raise UnreachableError(f"cloud {path}: {answer.status} {answer.data[:200]!r}")
        found: Json = json.loads(answer.data)
        return found
