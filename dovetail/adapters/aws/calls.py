"""The one place that talks to AWS.

boto3 blocks, so each call runs on a thread of a pool made for it; nothing of botocore gets out: answers are plain
dictionaries, errors are failures or a `Denied` to branch on. The pools are our own because `asyncio.to_thread` has six
threads on two cores, and a few slow calls would hold up every heartbeat. Warnings of ending instances have their own
pools: while EC2 hangs, the other calls take every thread they may have, and a spot warning leaves only two minutes.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Final

import boto3
import botocore
import botocore.exceptions as sdk
import botocore.parsers
import botocore.session
from botocore.config import Config

from dovetail.adapters.aws.failures import DRY_RUN_ALLOWED, Denied, denial_of, failure_of, refusal
from dovetail.adapters.aws.large_requests import ENTRIES, speed_up
from dovetail.adapters.aws.meters import retried
from dovetail.adapters.aws.rates import Rates
from dovetail.adapters.aws.service_models import service_models
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Forbidden, Throttled, Unreachable

Observer = Callable[[str, str, float, str], None]  # service, operation, seconds, error code or ""

_CONNECT_SECONDS: Final = 5.0
_ATTEMPTS: Final = 3  # of the SDK; every launch carries its own token, so a repeated call launches nothing twice
# The SDK's own description of itself is composed anew for each request, which a launch need not pay for.
_LARGE_AGENT: Final = f"Boto3/{boto3.__version__} Botocore/{botocore.__version__}"
QUEUE_POOL: Final = "aws-queue"
_QUEUE_THREADS: Final = 16  # one poll, and what ten batches of messages need
_CHECK_THREADS: Final = 4
_LOOKING: Final = ("Describe", "Get", "List")  # reading the queue takes messages from those who answer them
_ONCE: Final = frozenset({"ReceiveMessage"})
# A JSON body that breaks off is read as an answer without content; these always have one.
_CONTENT: Final = {
    "DescribeCluster": "cluster",
    "GetParameter": "Parameter",
    "GetProducts": "PriceList",
    "GetQueueUrl": "QueueUrl",
}


class Calls:
    """Clients of every service, made when first needed."""

    def __init__(self, settings: AwsSettings, observe: Observer, agent: str, *, read_only: bool) -> None:
        self._settings = settings
        self._read_only = read_only
        self._observe = observe
        self._agent = agent
        self._rates = Rates(settings.rates)
        self._pools = {
            "aws": ThreadPoolExecutor(max_workers=settings.threads, thread_name_prefix="aws"),
            QUEUE_POOL: ThreadPoolExecutor(max_workers=_QUEUE_THREADS, thread_name_prefix=QUEUE_POOL),
            "aws-checks": ThreadPoolExecutor(max_workers=_CHECK_THREADS, thread_name_prefix="aws-checks"),
        }
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._making = threading.Lock()

    @property
    def region(self) -> str:
        with self._making:
            found: str | None = self._settings.region or self._made_session().region_name
        return found or ""

    async def call(self, service: str, operation: str, **parameters: Any) -> Json:
        """One call; any refusal raises a failure."""
        answer = await self.attempt(service, operation, **parameters)
        if isinstance(answer, Denied):
            raise refusal(f"{service}:{operation}", answer)
        return answer

    async def attempt(self, service: str, operation: str, **parameters: Any) -> Json | Denied:
        """One call whose refusal the caller examines. Throttling and silence still raise failures."""
        subject = f"{service}:{operation}"
        if self._read_only and not operation.startswith(_LOOKING):
            raise Forbidden(subject, "not called: this process only looks")
        if not await self._rates.pass_through(operation):
            raise Throttled(subject, "more of these calls are waiting than AWS takes in half a minute", after=5.0)
        loop = asyncio.get_running_loop()
        started, code = loop.time(), ""
        try:
            pool = self._pools[_pool_of(service, operation)]
            answer = await loop.run_in_executor(pool, partial(self._blocking, service, operation, parameters))
            if operation in _CONTENT and _CONTENT[operation] not in answer:
                code = "Incomplete"
                raise Unreachable(subject, f"the answer ends before its {_CONTENT[operation]}")
            return answer
        except sdk.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            denied = denial_of(error)
            if denied is None:
                raise self._failed(subject, operation, error) from error
            return denied
        except (sdk.BotoCoreError, botocore.parsers.ResponseParserError, OSError) as error:
            code = type(error).__name__
            raise self._failed(subject, operation, error) from error
        finally:
            self._observe(service, operation, loop.time() - started, code)

    async def dry_run(self, operation: str, **parameters: Any) -> Denied | None:
        """An EC2 call that only asks whether it would be allowed; None if it would. Not retried (AWS-42)."""
        answer = await self.attempt("ec2", operation, DryRun=True, **parameters)
        if isinstance(answer, Denied):
            return None if answer.code == DRY_RUN_ALLOWED else answer
        return None  # a cloud that carries dry runs out; none of them costs anything

    async def pages(self, service: str, operation: str, **parameters: Any) -> AsyncIterator[Json]:
        token: Json = {}
        while True:
            answer = await self.call(service, operation, **parameters, **token)
            yield answer
            if service == "iam":
                if not answer.get("IsTruncated"):
                    return
                token = {"Marker": answer["Marker"]}
            else:
                if not answer.get("NextToken"):
                    return
                token = {"NextToken": answer["NextToken"]}

    async def every(self, service: str, operation: str, key: str, **parameters: Any) -> list[Json]:
        """The entries under `key` of all pages."""
        found: list[Json] = []
        async for page in self.pages(service, operation, **parameters):
            found += page.get(key) or []
        return found

    async def close(self) -> None:
        """Let calls in progress finish; accept no new ones. The poll for warnings is not waited for, because it may
        last twenty seconds: a message that it still receives comes again."""
        for name, pool in self._pools.items():
            asks = name != QUEUE_POOL
            await asyncio.get_running_loop().run_in_executor(
                None, partial(pool.shutdown, wait=asks, cancel_futures=not asks)
            )
        for client in self._clients.values():
            client.close()

    def _failed(self, subject: str, operation: str, error: Exception) -> Failure:
        failure = failure_of(subject, error)
        if isinstance(failure, Throttled):
            self._rates.throttled(operation)
        return failure

    def _blocking(self, service: str, operation: str, parameters: Json) -> Json:
        once = operation in _ONCE or bool(parameters.get("DryRun"))
        mode = "once" if once else "large" if operation in ENTRIES else "retrying"
        client = self._client(service, mode)
        answer: Json = getattr(client, _method(operation))(**parameters)
        retried(service, operation, answer.pop("ResponseMetadata", {}).get("RetryAttempts", 0))
        return answer

    def _client(self, service: str, mode: str) -> Any:
        """A client is thread-safe; making one is not."""
        found = self._clients.get((service, mode))
        if found is not None:
            return found
        with self._making:
            if (service, mode) not in self._clients:
                self._clients[service, mode] = self._made_client(service, mode)
            return self._clients[service, mode]

    def _made_client(self, service: str, mode: str) -> Any:
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=self._settings.read_seconds,
            max_pool_connections=self._settings.threads,
            retries={"total_max_attempts": 1 if mode == "once" else _ATTEMPTS, "mode": "standard"},
            user_agent=_LARGE_AGENT if mode == "large" else None,
            user_agent_extra=self._agent,
            parameter_validation=mode != "large",  # what we have just built ourselves
        )
        region = self._settings.region or None
        if service == "pricing":
            region = pricing_region(region or self._made_session().region_name or "")
        client = self._made_session().client(
            service, region_name=region, endpoint_url=self._settings.endpoint_url or None, config=config
        )
        if mode == "large":
            speed_up(client)
        return client

    def _made_session(self) -> Any:
        if self._session is None:
            core = botocore.session.Session()
            core.register_component("data_loader", _service_models())
            self._session = boto3.session.Session(botocore_session=core)
        return self._session


@cache
def _service_models() -> Any:
    """EC2's description alone takes a second to read; once per process is enough."""
    return service_models()


def pricing_region(region: str) -> str:
    """The region to ask for prices: the price list is served in a few regions only (AWS-68)."""
    for prefix, serving in (("ap-", "ap-south-1"), ("cn-", "cn-northwest-1"), ("eu-", "eu-central-1")):
        if region.startswith(prefix):
            return serving
    return "us-east-1"


def _pool_of(service: str, operation: str) -> str:
    if service == "sqs":
        return QUEUE_POOL
    return "aws-checks" if operation == "DescribeInstanceStatus" else "aws"


def _method(operation: str) -> str:
    """CreateFleet → create_fleet."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")
