"""Our identity to the API server: certificates, tokens, passwords, or the output of a program in the kubeconfig."""

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.remote.kubeconfig import Access, Entry

if TYPE_CHECKING:
    import ssl

PROGRAM_SECONDS: Final = 60.0  # a person may have to log in


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteIdentity:
    """The header that identifies us, and a client's certificate with its key, both PEM; each may be empty."""

    authorization: str = ""
    certificate: str = ""
    key: str = ""


def identity_of(access: Access) -> RemoteIdentity:
    """The identity by certificate, token, password or program, as the user's entry says."""
    user = access.user
    if user.get("exec"):
        return _of_program(access, user["exec"])
    if user.get("auth-provider"):
        raise CommandFailed("kubeconfig: users: auth-provider: no longer a part of Kubernetes; use exec")
    return RemoteIdentity(
        authorization=_authorization(user),
        certificate=_content(user, "client-certificate"),
        key=_content(user, "client-key"),
    )


def _authorization(user: Entry) -> str:
    token = str(user.get("token") or "")
    if user.get("tokenFile"):
        token = _text(str(user["tokenFile"])).strip()
    if token:
        return f"Bearer {token}"
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    return ""


def _content(entry: Entry, key: str) -> str:
    """The PEM in NAME-data, or in the file that NAME names."""
    data = entry.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(str(data)).decode()
        except ValueError:
            raise CommandFailed(f"kubeconfig: {key}-data: no base64") from None
    return _text(str(entry[key])) if entry.get(key) else ""


def _text(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError as error:
        raise CommandFailed(f"kubeconfig: {file}: {error.strerror}") from None


def _of_program(access: Access, wanted: Entry) -> RemoteIdentity:
    """Run it, as kubectl does, and read its ExecCredential."""
    command = [str(wanted.get("command", "")), *map(str, wanted.get("args") or ())]
    variables = {str(each["name"]): str(each["value"]) for each in wanted.get("env") or ()}
    info = {"apiVersion": wanted.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=PROGRAM_SECONDS, check=True)
        status = json.loads(done.stdout)["status"]
    except FileNotFoundError:
        raise CommandFailed(f"kubeconfig: exec: {command[0]}: there is no such program") from None
    except (subprocess.SubprocessError, OSError, ValueError, KeyError, TypeError) as error:
        raise CommandFailed(f"kubeconfig: exec: {command[0]}: {error}") from None
    return RemoteIdentity(
        authorization=f"Bearer {status['token']}" if status.get("token") else "",
        certificate=str(status.get("clientCertificateData") or ""),
        key=str(status.get("clientKeyData") or ""),
    )


def trust_of(access: Access, identity: RemoteIdentity) -> "ssl.SSLContext":
    """TLS settings: how the server is verified, and the certificate that we present."""
    import ssl

    from dovetail.cli.remote.named_server import NamedServer

    name = str(access.cluster.get("tls-server-name") or "")
    context = NamedServer(name) if name else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority = _content(access.cluster, "certificate-authority")
    try:
        if authority:
            context.load_verify_locations(cadata=authority)
        else:
            context.load_default_certs()
        if access.cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if identity.certificate:
            with _file(identity.certificate + "\n" + identity.key) as both:
                context.load_cert_chain(both)
    except ssl.SSLError as error:
        raise CommandFailed(f"kubeconfig: a certificate or its key cannot be used: {error}") from None
    return context


@contextmanager
def _file(text: str) -> Iterator[str]:
    """A file that only we may read, for as long as the block lasts: TLS takes certificates only from files."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield file.name


def proxy_of(access: Access, environment: Mapping[str, str] | None = None) -> str:
    """The proxy on the way to the server: the cluster's own, else the environment's; empty if there is none."""
    if access.cluster.get("proxy-url"):
        return str(access.cluster["proxy-url"])
    known: Mapping[str, Any] = os.environ if environment is None else environment
    named = known.get("HTTPS_PROXY") or known.get("https_proxy")
    if not named:
        return ""
    from urllib.parse import urlsplit
    from urllib.request import proxy_bypass

    return "" if proxy_bypass(urlsplit(access.server).netloc) else str(named)
