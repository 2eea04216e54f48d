"""Finds helm, which renders the charts in the tests, and actionlint, which reads the workflows: named by the
environment, in the cache, or built now.

Beside the control plane's programs and not among them, because neither needs the other: a change of helm's pin must
not cost the seven minutes of the control plane.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from testbed.plane.binaries import Say, TestbedUnavailable, built_alone
from testbed.plane.building import ACTIONLINT, HELM, Target

ENVIRONMENT_VARIABLE: Final = "DOVETAIL_HELM"
ACTIONLINT_VARIABLE: Final = "DOVETAIL_ACTIONLINT"


def find_helm(say: Say) -> Path:
    """The program, built if need be; TestbedUnavailable where that cannot be."""
    return _find(HELM, ENVIRONMENT_VARIABLE, say)


def find_actionlint(say: Say) -> Path:
    """The same of actionlint."""
    return _find(ACTIONLINT, ACTIONLINT_VARIABLE, say)


def _find(target: Target, variable: str, say: Say) -> Path:
    if named := os.environ.get(variable):
        if not os.access(named, os.X_OK):
            raise TestbedUnavailable(f"{variable} names {named}, which cannot be run")
        return Path(named)
    return built_alone(target, say)
