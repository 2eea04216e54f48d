"""The settings of one server, which stay the same for the life of the process.

Everything that may change while it runs is in the world (`state/world.py`). moto reads its account from the
environment when it is imported, so `prepare_environment` must run before that.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACCOUNT = "111122223333"
QUIET_MOTO = {
    "MOTO_ACCOUNT_ID": ACCOUNT,
    # moto would otherwise look for real credentials and a real region when its backends call one another
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-west-2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSettings:
    """One server: where it keeps its files, on which port, and what the cluster is called."""

    state: Path
    port: int = 0
    cluster_name: str = "dovetail"
    queue_name: str = "dovetail"
    cluster_endpoint: str = "https://cluster.example"
    cluster_ca: str = "Y2EtYnVuZGxl"
    world: dict[str, Any] = field(default_factory=dict)
    enforce_policies: bool = False  # refuse what deploy/aws/policies does not allow

    @property
    def ledger(self) -> Path:
        """Every call, one JSON object a line."""
        return self.state / "ledger.jsonl"

    @property
    def endpoint_file(self) -> Path:
        """Written when the server accepts connections; removed when it stops."""
        return self.state / "endpoint"


def prepare_environment() -> None:
    """Give moto its account and keep it from looking for anyone's credentials."""
    for name, value in QUIET_MOTO.items():
        os.environ[name] = value
