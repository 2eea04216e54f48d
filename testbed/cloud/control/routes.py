"""The control API: JSON over HTTP under `/_dovetail/`, to change the world, declare faults and read the ledger.

For tests, the demo and people with curl; no product code knows of it. Each route is described by its method's
docstring. Control requests are not AWS calls and are not in the ledger.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from testbed.cloud.control.events import DETAIL_TYPES, envelope, scheduled_event
from testbed.cloud.control.faults import read_fault
from testbed.cloud.http.wire import Answer
from testbed.cloud.json_object import Json
from testbed.cloud.operations import offerings
from testbed.cloud.operations.launching import subnet_named
from testbed.cloud.state.cloud import Cloud
from testbed.cloud.state.instances import CODES, Instance
from testbed.cloud.state.notation import ADDED, CHANGED, refuse_unknown

RULES = ("ice", "fail", "neverJoin", "bootSeconds")
SPOT_NOTICE = 120.0  # AWS takes a spot instance two minutes after its warning
LONGEST_WAIT = 30.0


class ControlError(Exception):
    """A control request that makes no sense."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _given(asked: Json, key: str, default: str) -> str:
    return str(asked.get(key, default))


class Control:
    """The routes."""

    PREFIX = "/_dovetail/"

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._routes: dict[tuple[str, str], Callable[[list[str], Json], Any]] = {
            ("GET", "health"): self._health,
            ("GET", "world"): lambda _path, _asked: self._cloud.world.document,
            ("PATCH", "world"): self._patch_world,
            ("POST", "reset"): self._reset,
            ("GET", "ledger"): self._ledger,
            ("GET", "prices"): lambda _path, _asked: offerings.price_catalogue(self._cloud),
            ("GET", "copied"): lambda _path, _asked: sorted(self._cloud.copied),
            ("GET", "types"): lambda _path, _asked: self._cloud.types(),
            ("GET", "instances"): self._instances,
            ("POST", "instances"): self._add_or_interrupt,
            ("PATCH", "instances"): self._patch_instance,
            ("POST", "rules"): self._add_rules,
            ("DELETE", "rules"): self._clear_rules,
            ("POST", "sqs"): self._send,
        }

    def answer(self, environ: Json, body: bytes) -> Answer:
        """Find the route and say in words what was wrong with a request."""
        path = environ["PATH_INFO"].removeprefix(self.PREFIX).strip("/").split("/")
        query = {key: values[-1] for key, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
        status: int = 200
        result: Any
        try:
            route = self._routes.get((environ["REQUEST_METHOD"], path[0]))
            if route is None:
                raise ControlError(404, f"no such route: {environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
            result = route(path[1:], json.loads(body) if body else query)
        except ControlError as refused:
            status, result = refused.status, {"error": str(refused)}
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            status, result = 400, {"error": f"{type(wrong).__name__}: {wrong}"}
        text = json.dumps(result, default=str).encode()
        return Answer(status=status, headers=[("Content-Type", "application/json")], body=text)

    def _health(self, _path: list[str], _asked: Json) -> Json:
        """GET health."""
        settings = self._cloud.settings
        return {"ready": True, "cluster": settings.cluster_name, "queue": settings.queue_name}

    def _patch_world(self, _path: list[str], asked: Json) -> Json:
        """PATCH world: merge a change (maps deep, lists replaced, null removes); the world that results."""
        for rule in asked.get("fail") or ():
            read_fault(rule)
        with self._cloud.lock:
            self._cloud.catalogue.types(asked.get("types") or [])  # refuse unknown names before anything changes
            self._cloud.world.patch(asked)
            return self._cloud.world.document

    def _reset(self, _path: list[str], _asked: Json) -> Json:
        """POST reset: the world as at the start, nothing launched; the ledger goes on."""
        self._cloud.reset()
        return {}

    def _ledger(self, path: list[str], asked: Json) -> Any:
        """GET ledger?since=N: the entries after number N, and the last number; GET ledger/last: that number alone."""
        if path == ["last"]:
            return self._cloud.ledger.last
        since = int(asked.get("since", 0))
        entries = self._cloud.ledger.since(since)
        return {"entries": entries, "last": since + len(entries)}

    # ---- instances ----------------------------------------------------------------------------------------

    def _instances(self, _path: list[str], asked: Json) -> Json:
        """GET instances?after=V&epoch=E&wait=S: those changed after version V, waiting at most S for a change."""
        store = self._cloud.instances
        after = int(asked.get("after", 0))
        wait = min(float(asked.get("wait", 0)), LONGEST_WAIT)
        epoch, version, changed = store.changed_since(asked.get("epoch"), after, wait)
        return {
            "epoch": epoch,
            "version": version,
            "now": time.time(),
            "instances": [self._shown(each) for each in changed],
        }

    def _shown(self, instance: Instance) -> Json:
        return {
            "id": instance.id,
            "number": instance.number,
            "type": instance.type,
            "zone": instance.zone,
            "zoneId": self._cloud.world["zones"].get(instance.zone),
            "region": self._cloud.world["region"],
            "subnet": instance.subnet,
            "image": instance.image,
            "state": instance.state(time.time()),
            "capacityType": instance.capacity_type,
            "spot": instance.capacity_type == "spot",
            "launchedAt": instance.launched_at,
            "runningAt": instance.running_at,
            "joinsAt": instance.joins_at,
            "terminatedAt": instance.terminated_at,
            "goneAt": instance.gone_at,
            "forcedState": instance.forced_state,
            "reboots": instance.reboots,
            "nodeName": instance.node_name,
            "address": instance.address,
            "providerID": f"aws:///{instance.zone}/{instance.id}",
            "tags": instance.tags,
            "securityGroups": instance.security_groups,
            "profile": instance.profile,
            "capacityReservation": instance.capacity_reservation,
            "blockDevices": instance.template.get("BlockDeviceMappings") or [],
            "interfaces": instance.template.get("NetworkInterfaces") or [],
            "userData": instance.user_data,
            "memoryOverhead": self._cloud.world["memoryOverhead"],
        }

    def _found(self, name: str) -> Instance:
        """An instance by id; `first` is the first live one, else the first of all."""
        store = self._cloud.instances
        found = next(iter([*store.live(), *store]), None) if name == "first" else store.get(name)
        if found is None:
            raise ControlError(404, f"no such instance: {name}")
        return found

    def _add_or_interrupt(self, path: list[str], asked: Json) -> Json:
        """POST instances, or POST instances/ID/interrupt."""
        with self._cloud.lock:
            if len(path) == 2 and path[1] == "interrupt":
                return self._interrupt(self._found(path[0]), asked)
            if path:
                raise ControlError(404, f"no such route: instances/{'/'.join(path)}")
            return self._add(asked)

    def _add(self, asked: Json) -> Json:
        """POST instances {type, zone, subnet, image, tags, age, spot, join}: an instance that no caller launched."""
        cloud = self._cloud
        refuse_unknown(asked, ADDED, "an added instance")
        launched = time.time() - float(asked.get("age", 0))
        subnet = subnet_named(cloud, _given(asked, "subnet", cloud.world["subnets"][0]["id"]))
        cloud.catalogue.types([asked["type"]])
        number = cloud.instances.next_number
        instance = Instance(
            number=number,
            type=asked["type"],
            zone=_given(asked, "zone", subnet["zone"]),
            subnet=subnet["id"],
            image=_given(asked, "image", cloud.world["images"][0]["id"]),
            capacity_type="spot" if asked.get("spot") else "on-demand",
            launched_at=launched,
            running_at=launched,
            joins_at=launched if asked.get("join") else None,
            template={},
            tags=dict(asked.get("tags") or {}),
            security_groups=list(asked.get("securityGroups") or ()),
            reservation=f"r-{number:017x}",
            spot_request=f"sir-{number:08x}" if asked.get("spot") else None,
        )
        cloud.instances.add(instance)
        return self._shown(instance)

    def _patch_instance(self, path: list[str], asked: Json) -> Json:
        """PATCH instances/ID {state, tags, securityGroups, subnet, image, spot, cr, crPref, joinsIn, extra}.

        Tags merge, null removes; `cr` is the reservation that it runs in, `crPref` its preference of reservations.
        """
        refuse_unknown(asked, CHANGED, "an instance")
        with self._cloud.lock:
            instance = self._found(path[0])
            for key, value in (asked.get("tags") or {}).items():
                if value is None:
                    instance.tags.pop(key, None)
                else:
                    instance.tags[key] = value
            instance.security_groups = list(asked.get("securityGroups", instance.security_groups))
            instance.subnet = asked.get("subnet", instance.subnet)
            instance.image = asked.get("image", instance.image)
            instance.extra |= asked.get("extra") or {}
            if "spot" in asked:
                instance.capacity_type = "spot" if asked["spot"] else "on-demand"
                instance.spot_request = f"sir-{instance.number:08x}" if asked["spot"] else None
            self._reserve(instance, asked)
            if "joinsIn" in asked:
                instance.joins_at = None if asked["joinsIn"] is None else time.time() + float(asked["joinsIn"])
            self._force(instance, asked.get("state"))
            self._cloud.instances.touch(instance)
            return self._shown(instance)

    @staticmethod
    def _reserve(instance: Instance, asked: Json) -> None:
        """What EC2 shows of its reservation: AWS may take it away, and the instance then runs on demand."""
        if "cr" in asked:
            instance.capacity_reservation = asked["cr"]
        if "crPref" in asked:
            preference = asked["crPref"]
            said = None if preference is None else {"CapacityReservationPreference": preference}
            instance.reservation_specification = said

    def _force(self, instance: Instance, state: str | None) -> None:
        """`terminated` and `shutting-down` happen as if AWS had decided; other states are shown until it ends."""
        if state is not None and state not in CODES:
            raise ControlError(400, f"an instance is {', '.join(CODES)}, not {state!r}")
        if state == "terminated":
            self._cloud.instances.terminate(instance, 0)
            instance.gone_at = time.time()
        elif state == "shutting-down":
            self._cloud.instances.terminate(instance, float(self._cloud.world["shutdownSeconds"]))
        elif state is not None:
            instance.forced_state = None if state == "running" else state

    # ---- interruptions ------------------------------------------------------------------------------------

    def _interrupt(self, instance: Instance, asked: Json) -> Json:
        """POST instances/ID/interrupt {kind, state, terminateAfter}: a warning in the queue, and AWS taking it back.

        Kinds: spot, rebalance, scheduled, state, reservation. Only `spot` and `reservation` take the instance,
        after `terminateAfter` seconds (120, as AWS does; null never). `scheduled` stands in the instance's status too.
        """
        kind = _given(asked, "kind", "spot")
        if kind not in DETAIL_TYPES:
            raise ControlError(400, f"kind is one of {', '.join(DETAIL_TYPES)}")
        body = envelope(kind, instance.id, self._cloud.world["region"], _given(asked, "state", "stopping"))
        if kind == "scheduled":
            with self._cloud.lock:
                declared = [*self._cloud.world["instanceStatus"], scheduled_event(instance.id)]
                self._cloud.world.patch({"instanceStatus": declared})
        message = self._cloud.moto.send_message(json.dumps(body))
        takes = kind in ("spot", "reservation")
        after = asked.get("terminateAfter", SPOT_NOTICE if takes else None)
        if after is not None:
            timer = threading.Timer(float(after), self._take, (instance, self._cloud.instances.epoch))
            timer.daemon = True
            timer.start()
        return {"messageId": message, "body": body}

    def _take(self, instance: Instance, epoch: str) -> None:
        with self._cloud.lock:
            if epoch == self._cloud.instances.epoch:
                self._cloud.instances.terminate(instance, float(self._cloud.world["shutdownSeconds"]))

    def _send(self, _path: list[str], asked: Json) -> Json:
        """POST sqs {body, queue}: any message; `$INSTANCE` becomes the id of the first live instance."""
        text = asked["body"] if isinstance(asked["body"], str) else json.dumps(asked["body"])
        if "$INSTANCE" in text:
            text = text.replace("$INSTANCE", self._found("first").id)
        return {"messageId": self._cloud.moto.send_message(text, asked.get("queue"))}

    # ---- rules --------------------------------------------------------------------------------------------

    def _rule_list(self, path: list[str]) -> str:
        if len(path) != 1 or path[0] not in RULES:
            raise ControlError(404, f"rules are kept under {', '.join(RULES)}")
        return path[0]

    def _add_rules(self, path: list[str], asked: Any) -> Json:
        """POST rules/KEY [rule, ...]: add rules, leaving the counts of those before alone."""
        key = self._rule_list(path)
        rules: list[Json] = asked if isinstance(asked, list) else [asked]
        if key == "fail":
            for rule in rules:
                read_fault(rule)
        self._cloud.world.add(key, rules)
        return {key: self._cloud.world[key]}

    def _clear_rules(self, path: list[str], _asked: Json) -> Json:
        """DELETE rules/KEY: no rule of that kind any more."""
        key = self._rule_list(path)
        self._cloud.world.patch({key: []})
        return {key: []}
