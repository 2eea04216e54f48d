"""Finds helm, which renders the charts in the tests: named by the environment, in the cache, or built now.

Beside the control plane's programs and not among them, because neither needs the other: a change of helm's pin must
not cost the seven minutes of the control plane.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from testbed.plane.binaries import Say, TestbedUnavailable, built_alone
from testbed.plane.building import HELM

ENVIRONMENT_VARIABLE: Final = "DOVETAIL_HELM"


def find_helm(say: Say) -> Path:
    """The program, built if need be; TestbedUnavailable where that cannot be."""
    if named := os.environ.get(ENVIRONMENT_VARIABLE):
        if not os.access(named, os.X_OK):
            raise TestbedUnavailable(f"{ENVIRONMENT_VARIABLE} names {named}, which cannot be run")
        return Path(named)
    return built_alone(HELM, say)
