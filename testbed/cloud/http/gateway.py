"""The front door: one HTTP request in, one answer out, one line in the ledger in between.

Order of things: read the call, choose its fault, (fail before), check the caller's rights, carry it out under the lock,
write the ledger line, (fail after), answer. The line is written before anything that may keep the answer from arriving,
so the ledger never holds less than the cloud did.
"""

import base64
import socket
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from testbed import kinder
from testbed.cloud.control.faults import Fault, Faults, spoiled
from testbed.cloud.control.routes import Control
from testbed.cloud.http.clock import by_its_clock, check_signed
from testbed.cloud.http.errors import AwsError, dry_run_passed
from testbed.cloud.http.fitting import Misfit, check_answer, check_body, marked
from testbed.cloud.http.wire import KNOWN, Answer, Call, check_call, model, read_call, write_answer, write_error
from testbed.cloud.json_object import Json
from testbed.cloud.operations import (
    fleet,
    instance_answers,
    interfaces,
    offerings,
    other_services,
    reserving,
    surroundings,
    templates,
)
from testbed.cloud.rights.guard import Guard
from testbed.cloud.state.cloud import Cloud, Operations, Work

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]
OPERATIONS: Operations = {
    **fleet.OPERATIONS,
    **instance_answers.OPERATIONS,
    **interfaces.OPERATIONS,
    **offerings.OPERATIONS,
    **other_services.OPERATIONS,
    **reserving.OPERATIONS,
    **surroundings.OPERATIONS,
    **templates.OPERATIONS,
}


def readable(params: Json) -> Json:
    """Parameters for the ledger: user data decoded, because base64 is unreadable."""
    data = params.get("LaunchTemplateData")
    if isinstance(data, dict):
        params = {**params, "LaunchTemplateData": readable(data)}
    if isinstance(params.get("UserData"), str):
        try:
            decoded = base64.b64decode(params["UserData"], validate=True).decode("utf-8", "replace")
        except ValueError:
            return params  # kept as it came: that it is broken is what the reader wants to see
        params = {**params, "UserData": decoded}
    return params


class Gateway:
    """The WSGI application."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._faults = Faults(cloud.world)
        self._control = Control(cloud)
        self._guard = Guard(cloud)
        self._may_copy = tuple(kinder.rows(kinder.COPIED))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if environ.get("PATH_INFO", "").startswith(Control.PREFIX):
            return _send(self._control.answer(environ, body), start_response)
        try:
            call = read_call(environ, body)
        except AwsError as refused:
            return _send(write_error(Call(service="ec2", operation="", params={}), refused), start_response)
        fault = self._faults.strike(call)
        answer = self._refuse(call, fault) if fault is not None and fault.when == "before" else None
        if answer is None:
            answer = self._carry_out(call, environ, body, fault)
        return _spoil(call, answer, fault, environ, start_response)

    @property
    def _ahead(self) -> float:
        return float(self._cloud.world["clockAhead"])

    def _refuse(self, call: Call, fault: Fault) -> Answer | None:
        """A fault before the effect; one that is only late goes on, in the world that it was meant for."""
        if fault.answer == "late":
            world = self._cloud.instances.epoch
            time.sleep(fault.delay)
            if self._cloud.instances.epoch == world:
                return None
            return write_error(call, AwsError("ServiceUnavailable", "the world was reset meanwhile", 503))
        self._record(call, error=fault.error, notes={"fault": fault.as_note()})
        return write_error(call, fault.error)

    def _carry_out(self, call: Call, environ: Environ, body: bytes, fault: Fault | None) -> Answer:
        notes: Json = {"fault": fault.as_note()} if fault is not None else {}
        operation = OPERATIONS.get((call.service, call.operation))
        work = Work(cloud=self._cloud, call=replace(call, params=marked(call.params)), notes=notes)
        if operation is None:
            return self._ask_moto(work, environ, body)
        with self._cloud.lock:
            try:
                check_signed(environ, time.time() + self._ahead)
                check_call(call)
                self._guard.check(work)
                if call.operation.startswith("Describe") and call.params.get("DryRun"):
                    raise dry_run_passed()
                result = operation(work)
                self._check_answer(call, result)
            except AwsError as refused:
                self._record(call, error=refused, notes=notes)
                return write_error(call, refused)
            except Exception as bug:
                return self._defect(call, bug, notes)
            self._record(call, error=None, notes=notes)
        shape = model(call.service).operation_model(call.operation).output_shape
        return write_answer(call, spoiled(by_its_clock(shape, result, self._ahead), fault))

    def _ask_moto(self, work: Work, environ: Environ, body: bytes) -> Answer:
        call = work.call
        try:
            with self._cloud.lock:
                check_signed(environ, time.time() + self._ahead)
                check_call(call)
                self._guard.check(work)
        except AwsError as refused:
            self._record(call, error=refused, notes=work.notes)
            return write_error(call, refused)
        answer, error = self._cloud.moto.ask(call, environ, body)
        if error is None and call.service in KNOWN:
            try:
                check_body(model(call.service).operation_model(call.operation), answer.body)
            except Misfit as bug:
                return self._defect(call, bug, work.notes)
        self._record(call, error=error, notes=work.notes)
        return answer

    def _check_answer(self, call: Call, result: Json) -> None:
        operation = model(call.service).operation_model(call.operation)
        copied = check_answer(operation, result) - self._cloud.copied
        unexplained = [each for each in sorted(copied) if kinder.explained(each, self._may_copy) is None]
        if unexplained:
            raise Misfit(f"{', '.join(unexplained)}: copied from a request, without a row in {kinder.REGISTER.name}")
        self._cloud.copied |= copied

    def _defect(self, call: Call, bug: Exception, notes: Json) -> Answer:
        """A defect of the test bed itself: seen in its log, answered like an outage of AWS."""
        traceback.print_exception(bug)
        broken = AwsError("InternalFailure", f"defect in the test bed: {bug!r}", 500)
        self._record(call, error=broken, notes=notes)
        return write_error(call, broken)

    def _record(self, call: Call, *, error: AwsError | None, notes: Json) -> None:
        self._cloud.ledger.record(
            {
                "service": call.service,
                "op": call.operation,
                "input": readable(call.params),
                "error": error.code if error is not None else None,
                "message": error.message if error is not None else None,
                "token": call.params.get("ClientToken"),
                "dryRun": bool(call.params.get("DryRun")),
                "instances": [],
                **notes,
                "agent": call.agent,
            }
        )


def _send(answer: Answer, start_response: StartResponse) -> list[bytes]:
    headers = [*answer.headers, ("Content-Length", str(len(answer.body)))]
    start_response(f"{answer.status} OK" if answer.status < 400 else f"{answer.status} Refused", headers)
    return [answer.body]


def _spoil(
    call: Call, answer: Answer, fault: Fault | None, environ: Environ, start_response: StartResponse
) -> Iterable[bytes]:
    """What becomes of the answer on its way."""
    if fault is None:
        return _send(answer, start_response)
    if fault.when == "after" and fault.delay:
        time.sleep(fault.delay)
    if fault.answer == "drop":
        _hang_up(environ)
    if fault.answer == "error" and fault.when == "after":
        return _send(write_error(call, fault.error), start_response)
    if fault.answer == "truncate":  # an honest length, a body that stops in mid-sentence
        return _send(replace(answer, body=answer.body[: len(answer.body) // 2]), start_response)
    if fault.answer == "cut":  # the full length promised, the line cut half-way
        _send(answer, start_response)
        return _half(answer.body, environ)
    return _send(answer, start_response)


def _half(body: bytes, environ: Environ) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    _hang_up(environ)


def _hang_up(environ: Environ) -> None:
    """Close the connection without another byte; werkzeug takes the exception as the client's leaving."""
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError("the fault asked for it")
