"""What the link is made of, and what people are told of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import ConnectConfig, TLSConfig

from dovetail.answers.doctor.temporal import link_check
from dovetail.connection.configuration import (
    TemporalUnusable,
    is_encrypted,
    is_local,
    link_words,
    read_options,
)
from dovetail.connection.refusals import meaning_of

CERTIFICATE = TLSConfig(client_cert=b"certificate", client_private_key=b"key")


def a_client(host: str = "temporal.internal:7233", **config: Any) -> Client:
    service = SimpleNamespace(config=ConnectConfig(target_host=host, **config))
    return cast(Client, SimpleNamespace(service_client=service, namespace="default"))


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))
    (tmp_path / "temporal.toml").write_text("")


@pytest.mark.parametrize(
    ("config", "encrypted", "words"),
    [
        ({}, False, "not encrypted"),
        ({"tls": False}, False, "not encrypted"),
        ({"tls": False, "api_key": "key"}, False, "not encrypted"),
        ({"tls": True}, True, "encrypted"),
        ({"tls": TLSConfig()}, True, "encrypted"),
        ({"tls": CERTIFICATE}, True, "encrypted, with a client certificate"),
        ({"api_key": "key"}, True, "encrypted, with an API key"),
        ({"tls": CERTIFICATE, "api_key": "key"}, True, "encrypted, with a client certificate and an API key"),
    ],
)
def test_the_link_is_told_as_the_sdk_makes_it(config: dict[str, Any], encrypted: bool, words: str) -> None:
    client = a_client(**config)
    assert (is_encrypted(client), link_words(client)) == (encrypted, words)
    assert (client.service_client.config._to_bridge_config().tls_config is not None) == encrypted


@pytest.mark.parametrize(
    ("client", "verdict"),
    [
        (a_client(), "warns"),
        (a_client(tls=True), "holds"),
        (a_client("localhost:7233"), "holds"),
        (a_client("127.0.0.1:7233"), "holds"),
        (a_client("[::1]:7233"), "holds"),
        (a_client("127.0.0.1.example:7233"), "warns"),
    ],
)
def test_doctor_warns_of_an_open_link_that_leaves_the_machine(client: Client, verdict: str) -> None:
    check = link_check(client)
    assert check.verdict == verdict and link_words(client) in check.found
    assert is_local(client) or verdict == "warns" or is_encrypted(client)


def test_a_key_in_a_file_goes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "of the variable")
    (tmp_path / "key").write_text("of the file\n")
    assert read_options(None)["api_key"] == "of the variable"
    assert read_options(tmp_path / "key")["api_key"] == "of the file"


def test_a_file_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TemporalUnusable, match="missing-key: cannot be read: No such file"):
        read_options(tmp_path / "missing-key")
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(tmp_path / "missing.pem"))
    with pytest.raises(TemporalUnusable, match=r"missing\.pem: cannot be read: No such file"):
        read_options(None)


def test_a_configuration_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "temporal.toml").write_text("[profile.default\naddress = ")
    with pytest.raises(TemporalUnusable, match="Temporal's configuration cannot be read"):
        read_options(None)


ALERT = 'Status { code: Unknown, source: Some(Error(Transport, Io, InvalidData, error: "received fatal alert: %s"))) }'
CLOSED = 'Status { code: Cancelled, source: Some(Error(Transport, hyper::Error(Canceled, "connection closed"))) }'


@pytest.mark.parametrize(
    ("text", "tls", "words"),
    [
        (ALERT % "CertificateRequired", True, "asks for a client certificate"),
        (ALERT % "CertificateExpired", CERTIFICATE, "client certificate has expired"),
        (ALERT % "CertificateUnknown", CERTIFICATE, "refuses the client certificate"),
        (ALERT % "BadCertificate", CERTIFICATE, "refuses the client certificate"),
        (CLOSED, False, "set TEMPORAL_TLS"),
        (CLOSED, True, "may ask for a client certificate"),
        (CLOSED, CERTIFICATE, "may refuse the client certificate"),
        ('Status { code: Unauthenticated, message: "invalid key" }', True, "TEMPORAL_API_KEY"),
    ],
)
def test_what_the_transport_says_is_told_with_the_setting(text: str, tls: bool | TLSConfig, words: str) -> None:
    assert words in meaning_of(text, {"target_host": "there:7233", "tls": tls})


def test_what_the_transport_says_of_something_else_has_no_meaning() -> None:
    assert meaning_of("connection refused", {"target_host": "there:7233"}) == ""
