"""Temporal as users run it: behind TLS, for clients with a certificate, its payloads encrypted.

The development server takes no TLS settings; a proxy of the test bed stands before it and asks for certificates that
are made for the test. Whoever connects to the server itself, as the tests do, sees what it keeps.
"""

import base64
import os
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from testbed.faults.certificates import Authority, Pair
from testbed.faults.tls_proxy import TlsProxy
from tests.system.histories import executions
from worlds.stage.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A proxy before a Temporal server, the authority that it trusts, and a client's certificate."""

    proxy: TlsProxy
    authority: Authority
    pair: Pair
    keys: Path

    @classmethod
    async def before(cls, address: str, folder: Path) -> "Secured":
        """Before that server."""
        authority = Authority(folder / "certificates")
        proxy = await TlsProxy.before(address, authority.server(), authority.certificate)
        keys = folder / "keys"
        keys.mkdir()
        (keys / "first").write_bytes(base64.b64encode(os.urandom(32)))
        (keys / "current").write_text("first")
        (keys / "strict").touch()
        return cls(proxy=proxy, authority=authority, pair=authority.client("worker"), keys=keys)

    @property
    def link(self) -> dict[str, str]:
        """The variables by which a process finds the server and shows who it is."""
        return {
            "TEMPORAL_ADDRESS": self.proxy.address,
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(self.authority.certificate),
            "TEMPORAL_TLS_CLIENT_CERT_PATH": str(self.pair.certificate),
            "TEMPORAL_TLS_CLIENT_KEY_PATH": str(self.pair.key),
        }

    @property
    def codec(self) -> dict[str, str]:
        """The variables by which a process reads and writes what the server keeps."""
        return {
            "DOVETAIL_PAYLOAD_CODEC": "dovetail.codecs.aes_gcm:from_folder",
            "DOVETAIL_CODEC_KEYS": str(self.keys),
        }


async def kept_by_the_server(client: Client, cluster: str) -> list[bytes]:
    """All that the server keeps of a cluster's workflows: every event, and every description."""
    kept = []
    for found in await executions(client, cluster):
        handle = client.get_workflow_handle(found.id, run_id=found.run_id)
        kept += [event.SerializeToString() for event in (await handle.fetch_history()).events]
        kept.append((await handle.describe()).raw_description.SerializeToString())
    return kept


def names_of_pods(stage: Stage) -> set[str]:
    """The pods that there are, and those that there were."""
    bodies = [*stage.world.objects("Pod"), *stage.departed("Pod")]
    return {body["metadata"]["name"] for body in bodies}


def found_in(names: set[str], texts: list[bytes]) -> set[str]:
    """Which of the names stand in what is kept."""
    return {name for name in names for text in texts if name.encode() in text}
