"""The port KeptObjects over an S3 bucket.

It has its own client: the cut-down description of AWS's services has no S3, which most workers never call. An operator
who names a bucket gives the worker's role the four actions on it (docs/operations.md).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import boto3
import botocore.exceptions as sdk
from botocore.config import Config

from dovetail.ports.failures import Forbidden, Unreachable

_GONE: Final = frozenset({"NoSuchKey", "404"})
_FORBIDDEN: Final = frozenset({"AccessDenied", "403", "NoSuchBucket"})
_AT_ONCE: Final = 16
_CONFIG: Final = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 3, "mode": "standard"})


class BucketObjects:
    def __init__(self, bucket: str, prefix: str) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._make: Callable[[], Any] = partial(boto3.client, "s3", config=_CONFIG)
        self._client: Any = None
        self._making = asyncio.Lock()

    async def put(self, name: str, data: bytes) -> None:
        """S3 shows an object whole or not at all."""
        await self._call("put_object", Key=self.prefix + name, Body=data)

    async def get(self, name: str) -> bytes | None:
        """None if there is no such key."""
        found = await self._call("get_object", Key=self.prefix + name)
        return None if found is None else await asyncio.to_thread(found["Body"].read)

    async def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """Some at a time."""
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str) -> bytes | None:
            async with turn:
                return await self.get(name)

        return list(await asyncio.gather(*[one(name) for name in names]))

    async def names(self, prefix: str) -> tuple[str, ...]:
        names: list[str] = []
        more: dict[str, str] = {}
        while True:
            found = await self._call("list_objects_v2", Prefix=self.prefix + prefix, **more) or {}
            names += [each["Key"][len(self.prefix) :] for each in found.get("Contents", ())]
            if not found.get("IsTruncated"):
                return tuple(sorted(names))
            more = {"ContinuationToken": found["NextContinuationToken"]}

    async def delete(self, name: str) -> None:
        """S3 reports no error if there was none."""
        await self._call("delete_object", Key=self.prefix + name)

    async def close(self) -> None:
        if self._client is not None:
            await asyncio.to_thread(self._client.close)

    async def _call(self, operation: str, **given: Any) -> Any:
        """The answer; None if there is no such object."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make)
        subject = f"s3:{operation} s3://{self.bucket}/{given.get('Key', given.get('Prefix', ''))}"
        try:
            return await asyncio.to_thread(partial(getattr(self._client, operation), Bucket=self.bucket, **given))
        except sdk.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _GONE:
                return None
            kind = Forbidden if code in _FORBIDDEN else Unreachable
            raise kind(subject, str(error)) from error
        except sdk.BotoCoreError as error:
            raise Unreachable(subject, str(error)) from error
