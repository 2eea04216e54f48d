"""Kubeconfigs as kubectl reads them: merged, by context, with paths of their own folder; errors name the field."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.cli.remote.identity import identity_of, proxy_of
from dovetail.cli.remote.kubeconfig import Access, access, contexts
from dovetail.cli.remote.workers import Where, services_of


def a_config(name: str, current: str = "", **user: Any) -> dict[str, Any]:
    return {
        "current-context": current,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443", "certificate-authority": "ca.crt"}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me", "namespace": "web"}}],
    }


def written(folder: Path, name: str, body: object) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(body))
    return str(folder / name)


def test_the_first_file_wins_and_paths_are_of_their_own_folder(tmp_path: Path) -> None:
    one = written(tmp_path / "a", "one", a_config("blue", token="first"))
    two = written(tmp_path / "b", "two", a_config("green", current="green", token="second"))
    both = os.pathsep.join([one, str(tmp_path / "missing"), two])

    found = access(both, "")

    assert (found.server, found.namespace) == ("https://green:6443", "web")
    assert found.cluster["certificate-authority"] == str(tmp_path / "b" / "ca.crt")
    assert identity_of(found).authorization == "Bearer first", "both call their user `me`, and the first file wins"
    assert access(both, "blue").server == "https://blue:6443"
    assert contexts(both) == ["blue", "green"]


@pytest.mark.parametrize(
    ("body", "context", "words"),
    [
        (a_config("blue"), "", "current-context: not set"),
        (a_config("blue"), "red", "there is no 'red'; there is blue"),
        ({**a_config("blue", "blue"), "clusters": []}, "", "clusters: there is no 'blue'"),
        ({**a_config("blue", "blue"), "users": []}, "", "users: there is no 'me'"),
        (["no mapping"], "", "no mapping"),
    ],
)
def test_a_fault_names_the_file_and_the_field(tmp_path: Path, body: object, context: str, words: str) -> None:
    file = written(tmp_path, "config", body)

    with pytest.raises(CommandFailed, match=words) as refused:
        access(file, context)
    assert file in str(refused.value)


def test_the_home_folders_config_is_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(CommandFailed, match=r"\.kube/config: there is no such file"):
        access("", "")
    written(tmp_path / ".kube", "config", a_config("blue", "blue"))
    assert access("", "").server == "https://blue:6443"


def test_a_program_gives_the_token_and_its_failure_is_named(tmp_path: Path) -> None:
    program = tmp_path / "login"
    program.write_text('#!/bin/sh\ntest "$WHO" = me && echo \'{"status": {"token": "from the program"}}\'\n')
    program.chmod(0o700)
    env = [{"name": "WHO", "value": "me"}]
    wanted = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program), "env": env}

    told = identity_of(Access(server="https://x", namespace="", user={"exec": wanted}))

    assert told.authorization == "Bearer from the program"
    with pytest.raises(CommandFailed, match="login"):
        identity_of(Access(server="https://x", namespace="", user={"exec": {**wanted, "env": []}}))
    with pytest.raises(CommandFailed, match="there is no such program"):
        identity_of(Access(server="https://x", namespace="", user={"exec": {"command": "/no/such"}}))


def test_the_way_to_the_server_may_lead_through_a_proxy() -> None:
    plain = Access(server="https://kube.example:6443", namespace="")
    named = Access(server="https://kube.example", namespace="", cluster={"proxy-url": "http://near:3128"})

    assert proxy_of(plain, {}) == ""
    assert proxy_of(plain, {"HTTPS_PROXY": "http://far:3128"}) == "http://far:3128"
    assert proxy_of(named, {"HTTPS_PROXY": "http://far:3128"}) == "http://near:3128"


def test_the_workers_service_is_looked_for_where_it_may_be() -> None:
    assert services_of(Where()) == tuple(
        f"/api/v1/namespaces/{namespace}/services/dovetail:{port}"
        for namespace in ("dovetail", "kube-system")
        for port in ("http-api", "http-metrics")
    )
    assert services_of(Where(namespace="ops")) == (
        "/api/v1/namespaces/ops/services/dovetail:http-api",
        "/api/v1/namespaces/ops/services/dovetail:http-metrics",
    )
    assert services_of(Where(service="ops/nodes:web")) == ("/api/v1/namespaces/ops/services/nodes:web",)
    with pytest.raises(CommandFailed, match="NAMESPACE/NAME:PORT"):
        services_of(Where(service="what ever"))
