"""The account whose instances are this cluster's: the credentials must belong to the same account as before.

In another account every instance would seem to be gone, and its finalizer would be removed while it still runs. The
account is recorded in an annotation of the ConfigMap with the shortages, so that it is known after a restart. Asking
STS who we are needs no right.
"""

import logging
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Misconfigured
from dovetail.ports.raw_objects import RawObjects

_log = logging.getLogger(__name__)

ANNOTATION: Final = "dovetail.sh/aws-account"


class Account:
    """The account as seen before; `config_maps` are those of our own namespace."""

    def __init__(self, config_maps: RawObjects, name: str) -> None:
        self._config_maps, self._name = config_maps, name

    async def check(self, calls: Calls) -> None:
        """Misconfigured if the credentials belong to another account than before. A failed look-up is logged."""
        try:
            now = str((await calls.call("sts", "GetCallerIdentity")).get("Account", ""))
            before = await self._seen()
            if now and not before:
                await self._config_maps.merge(self._name, {"metadata": {"annotations": {ANNOTATION: now}}})
        except Failure as failure:
            _log.warning("cannot find out whether the credentials are still of the same account: %s", failure)
            return
        if now and before and now != before:
            raise Misconfigured(
                "AWS credentials",
                f"they are of account {now}, but this cluster's instances are in account {before}; "
                f"if they have moved, take the annotation {ANNOTATION} off the ConfigMap {self._name}",
            )

    async def _seen(self) -> str:
        found: Json = await self._config_maps.read(self._name) or {}
        return str(((found.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION, ""))
