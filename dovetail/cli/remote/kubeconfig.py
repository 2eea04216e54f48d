"""A person's kubeconfig, as kubectl reads it: several files merged, a context chosen, paths relative to their file.

The first file that names a cluster, a user or a context wins, and so does the first current-context. Without any
kubeconfig a pod's service account is used.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dovetail.answers.failures import CommandFailed

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where the API server is, and our identity there: the entries of the kubeconfig, with absolute paths."""

    server: str
    namespace: str
    cluster: Entry = field(default_factory=dict)
    user: Entry = field(default_factory=dict)


def files_of(named: str) -> list[Path]:
    """The files: those named (a list as in PATH), else ~/.kube/config."""
    if named:
        return [Path(part).expanduser() for part in named.split(os.pathsep) if part]
    return [Path.home() / ".kube" / "config"]


def access(named: str, context: str) -> Access:
    """The access that a context gives; CommandFailed, with the file and the field, if it cannot be read."""
    files = files_of(named)
    if not any(file.is_file() for file in files) and not named and SERVICE_ACCOUNT.is_dir():
        return _of_pod()
    merged, chosen, shown = _chosen(files, context)
    known = _entry(merged, "contexts", chosen, shown)
    cluster = _entry(merged, "clusters", str(known.get("cluster", "")), shown)
    user = _entry(merged, "users", str(known["user"]), shown) if known.get("user") else {}
    server = str(cluster.get("server", ""))
    if not server.startswith(("https://", "http://")):
        raise CommandFailed(f"kubeconfig {shown}: clusters[{known.get('cluster')}].server: no URL: {server!r}")
    return Access(server=server, namespace=str(known.get("namespace") or "default"), cluster=cluster, user=user)


def context_name(named: str, context: str) -> str:
    """The chosen context; CommandFailed if it cannot be read."""
    return _chosen(files_of(named), context)[1]


def _chosen(files: list[Path], context: str) -> tuple[dict[str, Any], str, str]:
    """The merged files, the context, and the files' names for messages."""
    there = [file for file in files if file.is_file()]
    if not there:
        raise CommandFailed(f"kubeconfig {os.pathsep.join(map(str, files))}: there is no such file")
    merged = _merged([(file, _read(file)) for file in there])
    shown = os.pathsep.join(map(str, there))
    chosen = context or merged["current-context"]
    if not chosen:
        raise CommandFailed(f"kubeconfig {shown}: current-context: not set; name one with --context")
    return merged, str(chosen), shown


def contexts(named: str) -> list[str]:
    """The names of all contexts, for completion."""
    files = [(file, _read(file)) for file in files_of(named) if file.is_file()]
    return sorted(_merged(files)["contexts"])


def _read(file: Path) -> Entry:
    import yaml

    try:
        loaded = yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandFailed(f"kubeconfig {file}: {' '.join(str(error).split())}") from None
    if loaded is not None and not isinstance(loaded, dict):
        raise CommandFailed(f"kubeconfig {file}: it is no mapping")
    return loaded or {}


def _merged(files: list[tuple[Path, Entry]]) -> dict[str, Any]:
    merged: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for file, content in files:
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for kind in ("clusters", "users", "contexts"):
            for entry in content.get(kind) or ():
                body = entry.get(kind[:-1]) or {}
                merged[kind].setdefault(entry.get("name"), _absolute(body, file.parent))
    return merged


_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _absolute(body: Entry, folder: Path) -> Entry:
    changed = {key: str(folder / str(body[key])) for key in _PATHS if body.get(key)}
    return {**body, **changed}


def _entry(merged: Mapping[str, Any], kind: str, name: str, shown: str) -> Entry:
    found: Entry | None = merged[kind].get(name)
    if found is None:
        known = ", ".join(sorted(map(str, merged[kind]))) or "none"
        raise CommandFailed(f"kubeconfig {shown}: {kind}: there is no {name!r}; there is {known}")
    return found


def _of_pod() -> Access:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    return Access(
        server=f"https://{host}:{port}",
        namespace=(SERVICE_ACCOUNT / "namespace").read_text().strip(),
        cluster={"certificate-authority": str(SERVICE_ACCOUNT / "ca.crt")},
        user={"tokenFile": str(SERVICE_ACCOUNT / "token")},
    )
