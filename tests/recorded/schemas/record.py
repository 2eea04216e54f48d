"""Record the facts of Karpenter's own definitions: python -m tests.recorded.schemas.record

Each comes from the Go module that ships it, fetched by `go mod download` by its name and version. Go says that a module
asks for a newer Go than it is, and fetches it all the same. For another version of Karpenter the versions below are
raised, and the difference of the recorded files is what has changed.
"""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from tests.recorded.schemas.facts import Facts, facts_of

FOLDER: Final = Path(__file__).parent
AWS: Final = "github.com/aws/karpenter-provider-aws@v1.15.2"  # its NodePool and NodeClaim are core's with AWS's labels
CORE: Final = "sigs.k8s.io/karpenter@v1.15.0"
FOLDERS: Final = {AWS: "pkg/apis/crds/", CORE: "kwok/apis/crds/"}


def fetched(module: str) -> Path:
    """The module's archive."""
    with TemporaryDirectory() as folder:
        call = ["go", "mod", "download", "-json", module]
        answer = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    told: dict[str, Any] = json.loads(answer.stdout or "{}")
    if "Zip" not in told:
        raise SystemExit(told.get("Error") or answer.stderr.strip())
    return Path(told["Zip"])


def definitions(module: str) -> Iterator[dict[str, Any]]:
    """Those in the module's folder."""
    with zipfile.ZipFile(fetched(module)) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(f"{module}/{FOLDERS[module]}") and name.endswith(".yaml"):
                yield yaml.safe_load(archive.read(name))


def as_text(facts: Facts) -> str:
    """A line for each place."""
    return "".join(f"{json.dumps({place: facts[place]}, sort_keys=True)}\n" for place in sorted(facts))


def main() -> int:
    for module in FOLDERS:
        for crd in definitions(module):
            (FOLDER / f"{crd['spec']['names']['kind']}.jsonl").write_text(as_text(facts_of(crd)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
