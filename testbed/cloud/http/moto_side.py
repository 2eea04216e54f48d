"""The calls that moto answers: IAM, SQS, STS, EventBridge and every operation that is not answered in `operations/`.

Its application runs inside our process and is asked over WSGI, so nothing of moto is patched. It must be imported only
after the account is in the environment, and its IAM has no lock of its own.
"""

import importlib
import io
import re
import threading
import time
from datetime import UTC
from typing import Any

from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import Answer, Call
from testbed.cloud.json_object import Json
from testbed.cloud.settings import ACCOUNT, CloudSettings
from testbed.cloud.state.world import World

ANYONE = "{}"
XML_CODE = re.compile(rb"<Code>([^<]+)</Code>")
JSON_CODE = re.compile(rb'"__type":\s*"(?:[^"#]*#)?([^"]+)"')


def _is_kept(backend: Any, queue: str, message: Any) -> bool:
    """Whether a message has not outlived its queue's retention.

    moto asks this of every message that it hands out by counting the whole queue anew: half a second for ten of 500.
    """
    period = int(backend.queues[queue].message_retention_period)
    return bool(time.time() < float(message.sent_timestamp) / 1000 + period)


class MotoSide:
    """moto's application with the roles and the queue of the world in it."""

    def __init__(self, settings: CloudSettings, world: World) -> None:
        app = importlib.import_module("moto.moto_server.werkzeug_app")
        self._app = app.DomainDispatcherApplication(app.create_backend_app)
        self._iam = importlib.import_module("moto.iam.models").iam_backends
        queues = importlib.import_module("moto.sqs.models")
        queues.SQSBackend.is_message_valid_based_on_retention_period = _is_kept
        self._sqs = queues.sqs_backends
        self._all = importlib.import_module("moto.core.base_backend").BackendDict
        self._lock = threading.RLock()
        self._settings = settings
        self._world = world
        world.on_change(lambda _change: self._declare())
        self._declare()

    def reset(self) -> None:
        """Forget all profiles, messages, rules; the world's roles and queue come back."""
        with self._lock:
            self._all.reset()
        self._declare()

    def _declare(self) -> None:
        with self._lock:
            for role in self._world["roles"]:
                self.ensure_role(role)
            sqs = self._queues
            if self._settings.queue_name not in sqs.queues:
                # 300 s is the retention that Karpenter's template gives the queue (AWS-122)
                sqs.create_queue(self._settings.queue_name, {}, MessageRetentionPeriod=300)

    @property
    def _queues(self) -> Any:
        return self._sqs[ACCOUNT][self._world["region"]]

    @property
    def iam(self) -> Any:
        """moto's IAM backend."""
        return self._iam[ACCOUNT]["aws"]

    def ensure_role(self, name: str) -> None:
        """Make a role that the world declares."""
        if all(role.name != name for role in self.iam.get_roles()):
            self.iam.create_role(name, ANYONE, "/", None, "", [], "3600")

    def profile_names(self) -> set[str]:
        """The instance profiles that exist."""
        return {profile.name for profile in self.iam.get_instance_profiles()}

    def has_profile(self, name: str, visible_after: float) -> bool:
        """Whether EC2 knows a profile by now: IAM and EC2 agree a while after it was made."""
        return any(
            profile.name == name and time.time() >= profile.create_date.replace(tzinfo=UTC).timestamp() + visible_after
            for profile in self.iam.get_instance_profiles()
        )

    def send_message(self, body: str, queue: str | None = None) -> str:
        """Put a message into the interruption queue; its id."""
        return str(self._queues.send_message(queue or self._settings.queue_name, body).id)

    def ask(self, call: Call, environ: Json, body: bytes) -> tuple[Answer, AwsError | None]:
        """moto's answer as it is, and the error in it if there is one."""
        asked = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        if call.service == "iam":
            with self._lock:
                answer = self._run(asked)
        else:
            answer = self._run(asked)  # SQS waits for messages: never under a lock
        return answer, error_in(answer)

    def _run(self, environ: Json) -> Answer:
        begun: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], _info: object = None) -> Any:
            begun[:] = [int(status.split(" ", 1)[0]), headers]

        chunks = self._app(environ, start_response)
        body = b"".join(chunks)
        if hasattr(chunks, "close"):
            chunks.close()
        headers = [(name, value) for name, value in begun[1] if name.lower() != "content-length"]
        return Answer(status=begun[0], headers=headers, body=body)


def error_in(answer: Answer) -> AwsError | None:
    """The error code in a body of moto's; an operation unknown to it answers 500 with HTML (MOT-17)."""
    if answer.status < 400:
        return None
    for name, value in answer.headers:
        if name.lower() == "x-amzn-query-error":
            return AwsError(value.split(";", 1)[0], "", answer.status)
    found = XML_CODE.search(answer.body) or JSON_CODE.search(answer.body)
    return AwsError(found.group(1).decode() if found else "NotImplemented", "", answer.status)
