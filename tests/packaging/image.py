"""The image's file tree, built once for what it is built from."""

import hashlib
import os
import shutil
from pathlib import Path

from deploy.image.build import LOCK, build_tree, default_cache
from deploy.image.debian import LOCK as DEBIAN
from tests.packaging.charts import ROOT

VARIABLE = "DOVETAIL_IMAGE_TREE"  # a tree that is there
FOLDERS = ("dovetail", "workflows", "activities", "worker", "deploy/image")


def image_tree(architecture: str = "amd64") -> Path:
    """What `python -m deploy.image.build tree` makes of this commit; built anew when what it is made of has changed."""
    if (named := os.environ.get(VARIABLE)) and architecture == "amd64":
        return Path(named)
    digest = hashlib.sha256(LOCK.read_bytes() + DEBIAN.read_bytes())
    for name in FOLDERS:
        for file in sorted((ROOT / name).rglob("*.py")):
            digest.update(file.read_bytes())
    kept = ROOT / ".dovetail" / "images" / architecture
    found = kept / digest.hexdigest()[:16]
    if not found.exists():
        shutil.rmtree(kept, ignore_errors=True)
        unfinished = kept / "unfinished"
        build_tree(unfinished, default_cache(), architecture)
        unfinished.rename(found)
    return found
