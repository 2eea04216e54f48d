"""The parts of the link to Temporal: address, namespace, TLS, key.

They come from Temporal's own environment variables and configuration file, which the `temporal` command reads too. Only
an API key may also come from a file of its own, because a variable cannot be renewed in a running process. Every
reading opens the files anew.
"""

from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import TLSConfig

HERE: Final = "localhost:7233"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class TemporalUnusable(Exception):
    """The Temporal server cannot be used; the message says why and what to do."""


class TemporalRefuses(TemporalUnusable):
    """What answers does not let us in, or breaks off. That may pass by itself: a worker waits for it."""


class TemporalAway(TemporalRefuses):
    """Nothing answers."""


def read_options(api_key_file: Path | None) -> ClientConnectConfig:
    """How to connect, by what the environment and the files say now."""
    try:
        options = ClientConfig.load_client_connect_config()
        if api_key_file is not None:
            options["api_key"] = _key_in(api_key_file)
    except OSError as error:
        raise TemporalUnusable(f"{error.filename}: cannot be read: {error.strerror or error}") from None
    except (RuntimeError, ValueError) as error:
        raise TemporalUnusable(f"Temporal's configuration cannot be read: {error}") from None
    options.setdefault("target_host", HERE)
    return options


def is_named() -> bool:
    """Whether the environment or the file says where Temporal is; also where they cannot be read."""
    try:
        return "target_host" in ClientConfig.load_client_connect_config()
    except (OSError, RuntimeError, ValueError):
        return True


def _key_in(file: Path) -> str:
    key = file.read_text().strip()
    if not key:
        raise TemporalUnusable(f"DOVETAIL_TEMPORAL_API_KEY_FILE: {file} is empty")
    return key


def is_encrypted(client: Client) -> bool:
    """Whether nobody on the way can read the traffic; an API key alone turns TLS on too."""
    config = client.service_client.config
    return config.api_key is not None if config.tls is None else bool(config.tls)


def is_local(client: Client) -> bool:
    """Whether the way leads to this machine only."""
    return client.service_client.config.target_host.rpartition(":")[0] in _LOOPBACK


def link_words(client: Client) -> str:
    """How the link is secured, for people."""
    if not is_encrypted(client):
        return "not encrypted"
    config = client.service_client.config
    proofs = []
    if isinstance(config.tls, TLSConfig) and config.tls.client_cert:
        proofs.append("a client certificate")
    if config.api_key is not None:
        proofs.append("an API key")
    return f"encrypted, with {' and '.join(proofs)}" if proofs else "encrypted"
