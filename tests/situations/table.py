"""The situations that a worker over a simulated world can be in. tests/cluster/test_situations.py has those that take
real servers.

Each is here because an answer to it sounded sure once and was wrong, or would cost most if it were: the words that must
not appear are those of then.
"""

import json
from copy import deepcopy
from typing import Any, Final

from dovetail.model import names
from dovetail.model.reasons.endings import Ending
from dovetail.model.values.json import Json
from tests.adapters.simulator.manifests import a_pdb
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.test_shortages import a_refused_claim
from tests.cli.worlds import a_ready_pool
from tests.situations.scene import (
    ITS_UID,
    JUST_NOW,
    Asks,
    Situation,
    a_worker_alone,
    scheduler_back,
    scheduler_silent,
    sold_again,
    sold_out,
    step_done,
    step_fails,
    temporal_back,
    watch_broken,
    watch_whole,
)
from worlds.manifests import pod_manifest

LONG_AGO: Final = "2026-01-01T00:00:00Z"
NOTHING: Final = "nothing needs a person"
FORCEFUL: Final = "Forceful Termination"
NO_REASON: Final = "no method has a reason to take it"
ON_ITS_WAY: Final = "on its way"
POD: Final = "explain pod default/lone"
NODE: Final = "explain node n1"
CHECK: Final = "status --check"
PROMISES: Final = ("No node is needed now", "within seconds")
NEEDS: Final = 4  # the exit code of a check that somebody must look at
AN_HOUR: Final = 3600.0


def remembered(*entries: Json, part: str = "entries") -> str:
    """What a worker remembers in an annotation."""
    return json.dumps({"v": 1, part: entries})


def noted(body: Json, **annotations: str) -> Json:
    """With these annotations: `of.NAME` is dovetail.sh/NAME."""
    found = deepcopy(body)
    own = found["metadata"].setdefault("annotations", {})
    own.update({f"dovetail.sh/{key.replace('_', '-')}": text for key, text in annotations.items()})
    return found


def pool(*budgets: Json, **annotations: str) -> Json:
    return noted(a_ready_pool(disruption={**OPEN, "budgets": list(budgets) or OPEN["budgets"]}), **annotations)


def node(**annotations: str) -> tuple[Json, Json]:
    """n1 and its claim, which has these annotations."""
    claim, found = a_managed_node()
    return noted(claim, **annotations), found


def conditions(body: Json, *changed: Json) -> Json:
    body["status"] = {**body["status"], "conditions": [{"lastTransitionTime": LONG_AGO, **each} for each in changed]}
    return body


def not_ready_pool(message: str) -> Json:
    said: dict[str, Any] = {"status": "False", "reason": "NodeClassNotReady", "message": message}
    return conditions(a_ready_pool(), *({"type": kind, **said} for kind in ("Ready", "NodeClassReady")))


def leaving(**annotations: str) -> tuple[Json, ...]:
    """A claim that its finalizer holds once it is deleted."""
    claim, found = node(**annotations)
    claim["metadata"]["finalizers"] = [names.TERMINATION_FINALIZER]
    return pool(), claim, found


def drifted() -> tuple[Json, Json]:
    claim, found = node()
    mark = {"type": "Drifted", "status": "True", "reason": "NodeClassDrift", "message": ""}
    claim["status"]["conditions"].append({"lastTransitionTime": LONG_AGO, **mark})
    return claim, found


def own_object(kind: str, **spec: Any) -> Json:
    return {"apiVersion": "dovetail.sh/v1alpha1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


LACKS = 'Resource "nvidia.com/gpu" was requested but not registered'


def goes_for(ending: Ending, name: str, words: str, *never: str) -> Situation:
    """A node that leaves, as `status` and `explain node` say it."""
    said = f"{ending}: {words}" if words else ending.value
    return Situation(
        name=name,
        objects=leaving(ended_because=said),
        deletes=(("NodeClaim", "claim-n1"),),
        asks=(
            Asks("status", (f"{ending} drain", "too late (deleted)"), (FORCEFUL, " Deleted ", *never)),
            Asks(NODE, ("it is being terminated",), ("Each way to take it", NO_REASON)),
        ),
    )


def sick() -> tuple[Json, Json]:
    claim, found = node()
    return claim, conditions(found, {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"})


def unjoined() -> Json:
    claim, _ = node()
    claim["status"] = {"providerID": "embedded://i-1"}
    return conditions(claim, {"type": names.LAUNCHED, "status": "True", "reason": "Launched", "message": ""})


def lacking() -> tuple[Json, Json]:
    """As the launch writes it when no plugin brings the device."""
    claim, found = node()
    del found["metadata"]["labels"][names.INITIALIZED]
    done = ({"type": each, "status": "True", "reason": each} for each in (names.LAUNCHED, names.REGISTERED_CONDITION))
    waits = {"type": names.INITIALIZED_CONDITION, "status": "Unknown", "reason": "ResourceNotRegistered"}
    return conditions(claim, *done, {**waits, "message": LACKS}), found


def two_workers() -> tuple[Json, ...]:
    """Two pods of one ReplicaSet, of which the second is not ready."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    found = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dovetail"}}]
    for number, ready in enumerate(("True", "False")):
        worker = pod_manifest(f"worker-{number}", nodeName="n1")
        worker["metadata"].update(namespace="dovetail", ownerReferences=[owner])
        found.append(conditions({**worker, "status": {"phase": "Running"}}, {"type": "Ready", "status": ready}))
    return tuple(found)


def protected(key: str) -> Json:
    found = a_bound_pod("web-1", "n1")
    found["metadata"]["annotations"] = {key: "true"}
    return found


FIXED: Final = {"key": names.INSTANCE_TYPE, "operator": "In", "values": ["of-no-cloud"]}
NARROW: Final = a_ready_pool("none")
NARROW["spec"]["template"]["spec"]["requirements"] = [FIXED]
ICE: Final = a_ready_pool("ice")
ICE["spec"]["template"]["spec"]["requirements"] = [{**FIXED, "values": ["c-2x-amd64-linux"]}]
OLD_NODE: Final = node()[1] | {"metadata": {"name": "old", "labels": {}}}
PAUSE: Final = {"paused": "all", "paused_by": "alice", "paused_reason": "an incident"}
STOP: Final = f"{JUST_NOW} ten nodes came and none was used"
BEGUN: Final = remembered({"at": JUST_NOW, "reason": "Empty"})
MOVES: Final = remembered(
    {"at": JUST_NOW, "what": "taken", "nodes": 4}, {"at": JUST_NOW, "what": "returned", "nodes": 3}, part="moves"
)
CAME_BACK: Final = "of 4 nodes that consolidation took within a day 3 were launched again: it rests until 20"
RESUME: Final = "`dovetail resume --pool default` ends that"
REST: Final = {"rest_until": "9999999999/1/Empty/cancelled", "rest_reason": "not now", "rest_by": "alice"}

SITUATIONS: Final = (
    Situation(
        name="all is well",
        objects=(pool(), *node()),
        asks=(
            Asks(CHECK, ("1 node", NOTHING, "Scheduler: planning"), ("!",)),
            Asks("nodes", ("n1", "c-4x-amd64-linux", "1 node")),
            Asks("top --once", ("n1", "1–1 of 1"), ("!",)),
        ),
    ),
    # When the ground shakes
    Situation(
        name="Temporal does not answer",
        objects=(pool(), pod_manifest()),
        away=True,
        asks=(
            Asks(
                CHECK,
                (
                    "! Temporal does not answer for",
                    "goes on: deleted nodes drain",
                    "stands still: nothing is launched",
                    "docs/temporal-outages.md",
                    "nothing else needs a person",
                ),
                ("no worker answers", f" {NOTHING}"),
                NEEDS,
            ),
            Asks("top --once", ("! Temporal does not answer for",)),
            Asks(
                POD, ("a new node of NodePool default", "Temporal has not answered for"), ("busy", "no worker answers")
            ),
            Asks("plan", ("1 new node", "Temporal has not answered for")),
            Asks("nodes", ("no nodes",)),
            Asks("doctor", ("FAIL Temporal server", "1 check of 15 failed", "ok API server"), ("see its log",), 1),
            Asks("log", ("Temporal has not answered for", "it keeps the history"), ("Traceback",), 1),
            Asks("history n1", ("Temporal has not answered for",), ("Traceback",), 1),
            Asks("savings", ("Temporal has not answered for",), ("Traceback", "$"), 1),
        ),
        page=("Temporal does not answer", "nothing is launched, disrupted or called off", "1 pod waits"),
        page_never=PROMISES,
        ends=temporal_back,
        after=(
            Asks(CHECK, (NOTHING, "Scheduler: planning"), ("!", "has not answered")),
            Asks("plan", ("1 new node",), ("has not answered",)),
            Asks(POD, ("a new node of NodePool default",), ("has not answered",)),
        ),
    ),
    Situation(
        name="the Scheduler does not answer",
        objects=(pool(),),
        happens=scheduler_silent,
        asks=(
            Asks(CHECK, ("! the Scheduler does not answer", "Scheduler: no answer"), (f" {NOTHING}",), NEEDS),
            Asks("plan", ("the Scheduler could not be asked",)),
        ),
        page=("the Scheduler does not answer", "perhaps no launch and no disruption begins"),
        page_never=("within seconds",),
        ends=scheduler_back,
        after=(
            Asks(CHECK, (NOTHING, "Scheduler: planning"), ("!", "no answer")),
            Asks("plan", ("no node would go",), ("could not be asked",)),
        ),
    ),
    Situation(
        name="the API server answers 503 to every watch",
        objects=(pool(), *node()),
        happens=watch_broken(),
        asks=(
            Asks(
                CHECK,
                (
                    "! the API server's objects are not seen",
                    "503 for 1m35s",
                    "stands still: launches",
                    "1 node",
                    "docs/guides/troubleshooting.md",
                ),
                (f" {NOTHING}",),
                NEEDS,
            ),
            Asks("top --once", ("! the API server's objects are not seen", "n1")),
            Asks("nodes", ("n1",)),
            Asks("plan", ("the watch is broken: 503",), ("no node would go",), 1),
            Asks(NODE, ("the watch is broken: 503",), (NO_REASON,), 1),
        ),
        page=("the API server's objects are not seen", "launches, disruptions and drains"),
        ends=watch_whole,
        after=(
            Asks(CHECK, ("1 node", NOTHING), ("!", "503")),
            Asks("plan", ("n1",), ("503",)),
            Asks(NODE, ("it would go now",), ("503",)),
        ),
    ),
    Situation(
        name="one watch is broken",
        objects=(pool(),),
        happens=watch_broken("CSINode"),
        asks=(Asks(CHECK, ("! CSINode objects are not seen", "for 1m35s"), (f" {NOTHING}",), NEEDS),),
        page=("CSINode objects are not seen",),
        ends=watch_whole,
        after=(Asks(CHECK, (NOTHING,), ("!",)),),
    ),
    Situation(
        name="a step fails again and again",
        objects=(pool(),),
        happens=step_fails,
        asks=(Asks(CHECK, ("! launch_instance of demo/claim/x has failed 4 times", "DovetailStepFailing"), (), NEEDS),),
        page=("launch_instance of demo/claim/x has failed 4 times",),
        ends=step_done,
        after=(Asks(CHECK, (NOTHING,), ("!",)),),
    ),
    Situation(
        name="one worker where two should be",
        objects=(pool(), *node(), *two_workers()),
        later=AN_HOUR,
        happens=a_worker_alone,
        asks=(Asks(CHECK, ("! 1 of 2 workers work; not ready: worker-1",), (f" {NOTHING}",), NEEDS),),
        page=("1 of 2 workers work; not ready: worker-1",),
    ),
    # Why does a pod wait
    Situation(
        name="no capacity",
        objects=(ICE, pod_manifest()),
        happens=sold_out,
        asks=(
            Asks("status", ("NodePool ice: the cloud has run out of c-2x-amd64-linux", " since 2", "asked for again")),
            Asks(
                POD,
                ("ice: the cloud has run out of c-2x-amd64-linux", "wider types or zones would help"),
                ("ice: its own requirements let no instance type through",),
            ),
        ),
        page=("NodePool ice: the cloud has run out of c-2x-amd64-linux", "1 pod waits"),
        page_never=PROMISES,
        ends=sold_again,
        after=(
            Asks("status", ("1 pending",), ("run out",)),
            Asks(POD, ("a new node of NodePool ice",), ("run out",)),
        ),
    ),
    Situation(
        name="the pool's requirements let no type through",
        objects=(NARROW, pod_manifest()),
        happens=sold_out,
        asks=(Asks(POD, ("none: its own requirements let no instance type through",), ("run out",)),),
    ),
    Situation(
        name="a launch is refused",
        objects=(pool(), a_refused_claim("of-nobody")),
        later=AN_HOUR,
        asks=(
            Asks(
                CHECK,
                ("refused: Unauthorized: not authorized to perform: ec2:CreateFleet", "its launch is refused, for"),
                (f" {NOTHING}",),
                NEEDS,
            ),
        ),
    ),
    Situation(
        name="a pod whose launch is refused",
        objects=(pool(), pod_manifest(), a_refused_claim(ITS_UID)),
        asks=(
            Asks(POD, ("its launch is refused: NodeClaim default-new: Unauthorized", "ec2:CreateFleet"), (ON_ITS_WAY,)),
        ),
    ),
    Situation(
        name="an instance does not join",
        objects=(pool(), unjoined()),
        later=AN_HOUR,
        asks=(Asks(CHECK, ("not ready yet: waits to join", "dovetail history claim-n1"), (), NEEDS),),
    ),
    Situation(
        name="a node that has joined and lacks what its pods ask for",
        objects=(pool(), *lacking()),
        later=AN_HOUR,
        asks=(Asks(CHECK, (f"not ready yet: {LACKS}", "dovetail history claim-n1"), ("start-up taints",), NEEDS),),
    ),
    Situation(
        name="a NodePool is not ready",
        objects=(not_ready_pool("SubnetsReady=False: no subnets match"), pod_manifest()),
        asks=(
            Asks(
                CHECK,
                ("not ready: NodeClassReady: SubnetsReady=False: no subnets match", "kubectl describe"),
                (),
                NEEDS,
            ),
            Asks(POD, ("default: it is not ready", "no subnets match", "kubectl describe"), (ON_ITS_WAY,)),
        ),
    ),
    Situation(
        name="a pod and a pool whose class is not ready",
        objects=(
            not_ready_pool("SubnetsReady=False: SubnetSelector did not match any Subnets"),
            pod_manifest(),
        ),
        asks=(
            Asks("status", ("SubnetSelector did not match any Subnets",), (f" {NOTHING}",)),
            Asks("plan", ("SubnetSelector did not match any Subnets",), (ON_ITS_WAY,)),
        ),
    ),
    Situation(
        name="pods of an interrupted instance that a PodDisruptionBudget forbids to leave",
        objects=(
            *leaving(ended_because=f"{Ending.SPOT}: of i-1"),
            a_bound_pod("web-1", "n1"),
            a_pdb(maxUnavailable=0),
        ),
        deletes=(("NodeClaim", "claim-n1"),),
        asks=(
            Asks("plan", ("1 new node",)),
            Asks("status", ("SpotInterrupted drain", "1 pod left", "PDB default/web-pdb"), (FORCEFUL,)),
        ),
    ),
    Situation(
        name="the brake has stopped launches",
        objects=(pool(launches_stopped=STOP), pod_manifest()),
        asks=(
            Asks(CHECK, ("launches are stopped since", "dovetail resume --pool default"), (), NEEDS),
            Asks(POD, ("launches are stopped", "dovetail resume --pool"), (ON_ITS_WAY,)),
        ),
    ),
    Situation(
        name="Temporal is away and launches are stopped: two troubles, and both are said",
        objects=(pool(launches_stopped=STOP),),
        away=True,
        asks=(
            Asks(CHECK, ("! Temporal does not answer", "launches are stopped since"), (), NEEDS),
            Asks("doctor", ("FAIL Temporal server", "NodePool default", "launches are stopped"), (), 1),
        ),
    ),
    Situation(
        name="Temporal is away beside a refused launch and a NodePool that is not ready: doctor has each once",
        objects=(not_ready_pool("SubnetsReady=False: no subnets match"), a_refused_claim("of-nobody")),
        away=True,
        asks=(
            Asks(
                "doctor",
                ("FAIL Temporal server", "no subnets match", "launches", "ec2:CreateFleet"),
                ("see its log",),
                1,
            ),
        ),
    ),
    Situation(
        name="a pod that no type can hold",
        objects=(pool(), pod_manifest(cpu="9000")),
        later=AN_HOUR,
        asks=(
            Asks(POD, ("no instance type that the pool and its limits leave is large enough", "with smaller requests")),
            Asks(CHECK, ("default/lone pending for", POD), (), NEEDS),
        ),
    ),
    Situation(
        name="there is no NodePool",
        objects=(pod_manifest(),),
        asks=(
            Asks(POD, ("nothing is planned for it: no dynamic nodepools found",), (ON_ITS_WAY,)),
            Asks("status", ("no NodePools", "1 pending")),
        ),
    ),
    Situation(
        name="a pod behind a scheduling gate",
        objects=(pool(), pod_manifest(schedulingGates=[{"name": "quota"}])),
        asks=(Asks(POD, ("a scheduling gate holds it",), (ON_ITS_WAY, "in the next round")),),
    ),
    # Why does a node stay
    Situation(
        name="a pause with its author",
        objects=(pool(**PAUSE), *node()),
        asks=(
            Asks("status", ("PAUSED: disruption and expiry and launches", "by alice: an incident", "0, paused")),
            Asks("plan", ("held back Empty (emptiness): n1", "until it is resumed, by alice")),
            Asks(NODE, ("it stays: disruption paused for NodePool default",), (NO_REASON,)),
        ),
    ),
    Situation(
        name="a pause whose word nobody knows",
        objects=(pool(paused="everythng"), *node()),
        asks=(
            Asks("status", ("'everythng' is none of", "everything voluntary is paused", "0, paused")),
            Asks(NODE, ("it stays: disruption paused",), (NO_REASON,)),
        ),
    ),
    Situation(
        name="a budget of no nodes",
        objects=(pool({"nodes": "0"}), *node()),
        asks=(
            Asks(
                NODE,
                (
                    "it stays: it would go for Empty, but the budget of NodePool default (nodes: 0) lets no node go",
                    "until spec.disruption.budgets says otherwise",
                ),
                (NO_REASON, "2147483647"),
            ),
            Asks("plan", ("the pool's disruption budget lets no more of them go at once",)),
        ),
    ),
    Situation(
        name="a closed window",
        objects=(pool({"nodes": "0", "schedule": "@daily", "duration": "24h"}), *node()),
        asks=(Asks(NODE, ("lets no node go for Empty until 20", "when its window closes"), (NO_REASON,)),),
    ),
    Situation(
        name="a rate of a DisruptionPolicy that is used up",
        objects=(
            noted(pool(), begun=BEGUN),
            own_object("DisruptionPolicy", rates=[{"nodes": "1", "per": "1h"}]),
            *node(),
        ),
        asks=(
            Asks(
                NODE,
                (
                    "it stays: no more for Empty may begin for NodePool default until",
                    "by DisruptionPolicy disruptionpolicy: rates[0], 1 of at most 1 nodes have begun within 1h",
                ),
                (NO_REASON,),
            ),
            Asks("plan", ("held back Empty (emptiness): n1",), ("no limit",)),
        ),
    ),
    Situation(
        name="a window of a DisruptionPolicy that is closed",
        objects=(pool(), own_object("DisruptionPolicy", deny=[{"from": "00:00", "to": "00:00"}]), *node()),
        asks=(
            Asks(
                NODE,
                ("it stays: Empty may not begin for NodePool default until it is changed, by DisruptionPolicy",),
                (NO_REASON,),
            ),
            Asks("plan", ("held back Empty (emptiness): n1",)),
        ),
    ),
    Situation(
        name="a Freeze",
        objects=(pool(), own_object("Freeze", until="9999-01-01T00:00:00Z", reason="a sale"), *node()),
        asks=(
            Asks(NODE, ("it stays:", "Freeze freeze", "a sale"), (NO_REASON,)),
            Asks("status", ("Freeze freeze", "a sale")),
        ),
    ),
    Situation(
        name="a drifted node whose replacement is sold out",
        objects=(pool(), *drifted(), a_bound_pod("web-1", "n1")),
        happens=sold_out,
        asks=(
            Asks(NODE, ("it stays:",), (NO_REASON, "it would go now")),
            Asks("status", ("NodePool default: the cloud has run out of",)),
        ),
    ),
    Situation(
        name="consolidation rests where what it took was launched again",
        objects=(pool(breaker=MOVES), *node(), a_bound_pod("web-1", "n1")),
        asks=(
            Asks(
                NODE,
                (f"it stays: it would go for Underutilized, but {CAME_BACK}", f"binding: {CAME_BACK}", RESUME),
                (NO_REASON,),
            ),
            Asks("status", (f"Underutilized 0, {CAME_BACK}", RESUME)),
            Asks("plan", ("no node would go", CAME_BACK, RESUME)),
        ),
        page=(CAME_BACK,),
    ),
    Situation(
        name="a budget for one reason leaves the others without a limit",
        objects=(pool({"nodes": "0", "reasons": ["Drifted"]}), *node()),
        asks=(
            Asks(
                NODE, ("it would go now, for: emptiness", "Empty, Underutilized, Unhealthy: no limit"), ("2147483647",)
            ),
        ),
    ),
    Situation(
        name="a pod that must not be disrupted",
        objects=(pool(), *node(), protected(names.DO_NOT_DISRUPT)),
        asks=(
            Asks(NODE, ('it stays: Pod has "karpenter.sh/do-not-disrupt"', "until the annotation is taken off")),
            Asks("nodes -o wide", ('stays: Pod has "karpenter.sh/do-not-disrupt"',)),
        ),
    ),
    Situation(
        name="an annotation that has meant nothing since v1 protects nobody",
        objects=(pool(), *node(), protected("karpenter.sh/do-not-evict")),
        asks=(Asks(NODE, ("it would go now",), ("it stays",)),),
    ),
    Situation(
        name="a PodDisruptionBudget that allows nothing",
        objects=(pool(), *node(), a_bound_pod("web-1", "n1"), a_pdb(maxUnavailable=0)),
        asks=(Asks(NODE, ("it stays: Pdb prevents pod evictions", "default/web-pdb, allows 0 disruptions now")),),
    ),
    Situation(
        name="a person has called a disruption off, and nobody has answered yet",
        objects=(pool(), *node(cancel="not now")),
        asks=(
            Asks(NODE, ("it stays: A person has called its disruption off",), ("it would go now",)),
            Asks("plan", ("no node would go",)),
        ),
    ),
    Situation(
        name="a node rests after a person called its disruption off",
        objects=(pool(), *node(**REST)),
        asks=(
            Asks(NODE, ("it stays: A person called its last disruption off",), ("it would go now",)),
            Asks("nodes", ("rests after a disruption that was undone",)),
            Asks("plan", ("no node would go",)),
        ),
    ),
    Situation(
        name="a replacement that a person has asked for",
        objects=(pool(), *node(replace="a bad disk", replace_by="bob"), a_bound_pod("web-1", "n1")),
        asks=(
            Asks(NODE, ("it would go now, for: requests", "a person's request yes, now")),
            Asks("nodes", ("to be replaced: a person asks for it",)),
        ),
    ),
    Situation(
        name="a node that is not ours",
        objects=(pool(), OLD_NODE),
        asks=(
            Asks("explain node old", ("it stays: node isn't managed by karpenter", "it is left alone")),
            Asks("nodes", ("1 of them not ours",)),
        ),
    ),
    Situation(
        name="a node that has not been ready for long",
        objects=(pool(), *sick()),
        asks=(Asks(CHECK, ("n1 not ready for", NODE), (f" {NOTHING}",), NEEDS),),
    ),
    # Why does it go
    goes_for(Ending.SPOT, "a spot interruption", "of i-1"),
    goes_for(Ending.MAINTENANCE, "an instance that the cloud retires", "of i-1"),
    goes_for(Ending.HEALTH, "an instance whose checks fail", "of i-1"),
    goes_for(Ending.STOPPED, "an instance that somebody stopped", "of i-1"),
    goes_for(Ending.REPAIRED, "a repair", "Ready=False for 10m"),
    goes_for(Ending.EXPIRED, "expiry", "after 720h"),
    goes_for(Ending.SCALED_DOWN, "a static NodePool that was scaled down", ""),
    goes_for(Ending.INSTANCE_GONE, "an instance that is gone", ""),
    goes_for(Ending.NODE_DELETED, "a Node object that somebody deleted", ""),
    goes_for(Ending.UNREGISTERED, "an instance that never registered", "no node within 900 s"),
    goes_for(
        Ending.UNINITIALIZED, "an empty node that was never initialised", 'Resource "nvidia.com/gpu" was requested'
    ),
    goes_for(Ending.NO_CAPACITY, "a launch without capacity", "m5.large is sold out"),
    goes_for(Ending.REFUSED, "a launch that was refused in the end", "Unauthorized"),
    Situation(
        name="a NodePool that somebody deleted",
        objects=leaving()[1:],
        deletes=(("NodeClaim", "claim-n1"),),
        asks=(Asks("status", ("NodePoolDeleted drain",), (FORCEFUL,)),),
    ),
    Situation(
        name="a node that somebody deleted",
        objects=leaving(),
        deletes=(("NodeClaim", "claim-n1"),),
        asks=(Asks("status", ("Deleted drain", "too late (deleted)"), (FORCEFUL,)),),
    ),
    # What people mistype
    Situation(
        name="names that nothing has",
        objects=(pool(),),
        asks=(
            Asks("explain node nowhere", ("nowhere: there is no such Node or NodeClaim",), ("Traceback",), 1),
            Asks("explain pod default/nobody", ("default/nobody: there is no such pod",), ("Traceback",), 1),
            Asks("status --pool nowhere", ("there is no such NodePool of ours; there is default",), ("Traceback",), 1),
        ),
    ),
)
