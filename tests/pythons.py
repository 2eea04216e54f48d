"""The other Pythons that are promised: install, import everything, print the version, run one fast folder with each.

`python -m tests.pythons`, or `make pythons`. The classifiers in pyproject.toml say which they are. One that is not on
this machine is left out, and that is printed.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = ROOT / ".dovetail" / "pythons"
UV: Final = str(Path(sys.executable).parent / "uv")
FOLDER: Final = "tests/disruption"
SECONDS: Final = 600.0  # of one step, on a machine full of other work
IMPORTS: Final = """
import importlib, os, pkgutil, sys
import dovetail
names = [found.name for found in pkgutil.walk_packages(dovetail.__path__, "dovetail.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(f"{len(names)} modules imported", flush=True)
os._exit(0)
"""


def promised() -> Iterator[str]:
    """The versions of the classifiers, such as 3.12."""
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]:
        if found := re.fullmatch(r"Programming Language :: Python :: (\d+\.\d+)", line):
            yield found[1]


def found_on_this_machine(version: str) -> str:
    """Its interpreter, on the PATH or among pyenv's; empty where there is none that runs. None is downloaded."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True),
    ]
    for found in [str(each) for each in candidates if each is not None]:
        # A shim of pyenv is on the PATH for versions, too, that it does not run.
        if subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return ""


def tried(version: str, interpreter: str) -> bool:
    """Whether all of it went well."""
    environment = KEPT / version
    python, lock = environment / "bin" / "python", str(ROOT / "requirements-dev.lock")
    index = ["--default-index", url] if (url := os.environ.get("PIP_INDEX_URL")) else []
    into = ["pip", "install", "--quiet", "--python", str(python), "--no-deps"]
    steps = (
        [UV, "venv", "--quiet", "--clear", "--python", interpreter, str(environment)],
        [UV, *into, "--require-hashes", *index, "-r", lock],
        [UV, *into, "--no-build-isolation", "--editable", str(ROOT)],
        [str(python), "-c", IMPORTS],
        [str(python), "-m", "dovetail.cli.main", "--version"],
        [str(python), "-m", "tests.run", "-q", "-m", "not slow and not soak", FOLDER],
    )
    return all(subprocess.run(step, cwd=ROOT, timeout=SECONDS, check=False).returncode == 0 for step in steps)


def main() -> int:
    """Each in turn; 1 where one of them failed."""
    failed = []
    for version in promised():
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            continue
        interpreter = found_on_this_machine(version)
        if not interpreter:
            print(f"Python {version}: left out, it is not on this machine", flush=True)
            continue
        print(f"Python {version}: {interpreter}", flush=True)
        began = time.monotonic()
        if not tried(version, interpreter):
            failed.append(version)
        print(
            f"Python {version}: {'FAILED' if version in failed else 'ok'}, {time.monotonic() - began:.0f} s", flush=True
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
