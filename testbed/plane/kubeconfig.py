"""Files by which a client finds one plane and proves who it is.

Every part of the plane has one, the admin, and each identity that a test makes. A kubeconfig holds its certificates
inside, so that it can be copied anywhere; JSON is YAML enough for every reader of it.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from testbed.plane.certificates import Authority


def write_kubeconfig(path: Path, server: str, pki: Path, user: str, groups: tuple[str, ...] = ()) -> Path:
    """A kubeconfig for this user, signed by the authority whose files lie in `pki`."""
    authority = Authority.load(pki)
    pair = authority.client(user, groups)
    cluster = {"server": server, "certificate-authority-data": _inline(authority.pair.certificate)}
    identity = {"client-certificate-data": _inline(pair.certificate), "client-key-data": _inline(pair.key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": user, "user": identity}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        "current-context": "testbed",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=1))
    return path


def _inline(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
