"""The story: pods get nodes, a disruption is called off, a worker is killed, empty nodes leave.

Played on any stage; a person can follow it line by line. Each scene ends with assertions on the objects and on the
cloud's own ledger, never on what the workflows report of themselves; the first that fails ends the story with an error.
"""

import time

from temporalio.client import Client

from dovetail.cli.demo.performance import Performance, has_condition
from dovetail.cli.demo.stage import Stage
from dovetail.cli.output import say
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.workflows.converter import DATA_CONVERTER

PODS = 12


class DemoStory(Performance):
    """Pods, a cancel, a kill."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.client: Client | None = None

    async def play(self) -> None:
        await self.open(self.node_pool())
        self.client = await Client.connect(self.stage.temporal_address, data_converter=DATA_CONVERTER)
        await self.pods_get_nodes()
        await self.an_operator_looks()
        await self.a_disruption_is_called_off()
        await self.empty_nodes_go_although_the_worker_is_killed()
        self.close()

    async def pods_get_nodes(self) -> None:
        """Pending to running."""
        say("")
        self.say(f"SCENE 1. A Deployment of {PODS} pods arrives; no node has room for them.")
        await self.stage.apply(deployment(PODS))
        began = time.monotonic()
        await self.until(lambda: self.count("NodeClaim", at_least=1), 60, "NodeClaims are created")
        await self.follow_claims()
        await self.until(lambda: self.running(PODS), 90, "all pods run")
        self.say(f"all {PODS} pods run, {time.monotonic() - began:.1f} s after they were created")
        nodes = await self.stage.objects("Node")
        for node in nodes:
            labels = node["metadata"]["labels"]
            self.say(f"  Node {node['metadata']['name']}: {labels.get(names.INSTANCE_TYPE)}")
        await self.hold(await self.one_instance_per_claim(), "one instance was launched per NodeClaim")

    async def an_operator_looks(self) -> None:
        """status, explain and plan: what exists, what it costs, why it stays, what would be done."""
        say("")
        self.say("SCENE 2. What an operator types.")
        node = str((await self.stage.objects("Node"))[0]["metadata"]["name"])
        for words in (("status",), ("explain", "node", node), ("plan",)):
            await self.dovetail(*words)
        self.asserted.append("status, explain and plan answer")

    async def a_disruption_is_called_off(self) -> None:
        """Drift, pre-spin, cancel by signal, revert."""
        say("")
        self.say("SCENE 3. The NodePool's template changes: its nodes have drifted, replacements are launched first.")
        await self.stage.set_boot_delay(8.0)
        await self.until(lambda: self.all_initialised(), 60, "nodes are initialised")
        await self.stage.apply(self.node_pool(labels={"colour": "green"}))
        claim = await self.marked_claim()
        workflow = claim["metadata"]["annotations"][names.OWNER]
        node = claim["status"]["nodeName"]
        self.say(f"{workflow} has tainted {node} and waits for its replacement")
        claims = await self.until(lambda: self.replacement(claim), 60, "the replacement is launched")
        self.say(f"replacement {claims} is on its way; we think better of it")
        await self.stage.apply(self.node_pool())
        command = f"temporal workflow signal --workflow-id {workflow} --name cancel --input '\"changed our mind\"'"
        self.say(command)
        target = ("--workflow-id", workflow, "--name", "cancel")
        await self.temporal("workflow", "signal", *target, "--input", '"changed our mind"')
        await self.until(lambda: self.untainted(node), 60, "the node is schedulable again")
        await self.until(lambda: self.claim_gone(str(claims)), 60, "the replacement is given back")
        assert self.client is not None
        record = await self.client.get_workflow_handle(workflow).result()
        await self.hold(record["outcome"] == "cancelled", f"the record says: cancelled, {record['message']}")
        self.asserted.append("after the cancel the node is schedulable and the replacement was given back")
        await self.stage.set_boot_delay(2.0)

    async def empty_nodes_go_although_the_worker_is_killed(self) -> None:
        """Scale to zero; kill -9 in mid-drain; the same workflow continues."""
        say("")
        self.say("SCENE 4. The workload goes; its nodes are empty, are looked at twice 15 s apart, and are disrupted.")
        await self.stage.scale("web", 0)
        claim = await self.until(self.deleting_claim, 60, "an empty node's NodeClaim is deleted")
        identity = claim_owner_id(self.stage.cluster, claim["metadata"]["name"])
        assert self.client is not None
        await self.until(lambda: self.runs_as(identity, "TerminateNode"), 15, "its TerminateNode runs")
        before = await self.client.get_workflow_handle(identity).describe()
        self.say(f"{identity} drains {claim['status'].get('nodeName')}; now the worker is killed (-9)")
        self.kill_the_worker()
        await self.until(self.nothing_left, 120, "no NodeClaim, Node or instance is left")
        self.say("all nodes are gone")
        ending = await self.client.get_workflow_handle(identity, run_id=before.run_id).result()
        after = await self.client.get_workflow_handle(identity).describe()
        await self.hold(after.run_id == before.run_id, f"{identity} went on in the same run, across the kill")
        await self.hold(ending == "terminated", "and ended there: terminated")
        await self.hold(await self.one_instance_per_claim(), "never more than one instance per NodeClaim")
        self.asserted.append("no NodeClaim, no Node and no instance is left")

    async def leave_running(self) -> None:
        """The workload comes back, so that there is something to look at, with instructions."""
        say("")
        self.say("The workload comes back, and everything stays until you press Ctrl-C.")
        await self.stage.scale("web", PODS)
        await self.until(lambda: self.running(PODS), 90, "all pods run")
        self.how_to_look(str((await self.stage.objects("Node"))[0]["metadata"]["name"]))

    # What the story looks at

    async def count(self, kind: str, at_least: int) -> bool:
        return len(await self.stage.objects(kind)) >= at_least

    async def all_initialised(self) -> bool:
        claims = await self.stage.objects("NodeClaim")
        return bool(claims) and all(has_condition(c, names.INITIALIZED_CONDITION) for c in claims)

    async def marked_claim(self) -> Json:
        async def marked() -> Json | None:
            claims = await self.stage.objects("NodeClaim")
            return next((c for c in claims if names.OWNER in (c["metadata"].get("annotations") or {})), None)

        found: Json = await self.until(marked, 60, "a drifted node is marked")
        return found

    async def replacement(self, marked: Json) -> str | None:
        plan = marked["metadata"]["annotations"][names.OWNER].rsplit("/", 1)[-1]
        for claim in await self.stage.objects("NodeClaim"):
            ours = str((claim["metadata"].get("annotations") or {}).get(names.PLAN, "")).startswith(f"{plan}/")
            if ours and has_condition(claim, names.LAUNCHED):
                return str(claim["metadata"]["name"])
        return None

    async def untainted(self, node: str) -> bool:
        found = [n for n in await self.stage.objects("Node") if n["metadata"]["name"] == node]
        return bool(found) and not any(t["key"] == names.DISRUPTED_TAINT for t in found[0]["spec"].get("taints") or [])

    async def claim_gone(self, name: str) -> bool:
        return all(c["metadata"]["name"] != name for c in await self.stage.objects("NodeClaim"))

    async def deleting_claim(self) -> Json | None:
        claims = await self.stage.objects("NodeClaim")
        return next((c for c in claims if c["metadata"].get("deletionTimestamp")), None)

    async def runs_as(self, identity: str, kind: str) -> bool:
        assert self.client is not None
        return (await self.client.get_workflow_handle(identity).describe()).workflow_type == kind

    async def nothing_left(self) -> bool:
        nodes = [n for n in await self.stage.objects("Node") if names.NODE_POOL in n["metadata"]["labels"]]
        return not nodes and not await self.stage.objects("NodeClaim") and await self.stage.live_instances() == 0

    async def one_instance_per_claim(self) -> bool:
        return all(count == 1 for count in (await self.stage.launches()).values())

    async def follow_claims(self) -> None:
        for claim in await self.stage.objects("NodeClaim"):
            name = claim["metadata"]["name"]
            self.say(f"  NodeClaim {name}: workflow {claim_owner_id(self.stage.cluster, name)}")

    def node_pool(self, labels: dict[str, str] | None = None) -> Json:
        template: Json = {
            "metadata": {"labels": {"colour": "blue", **(labels or {})}},
            "spec": {
                "nodeClassRef": self.stage.manifests.node_class_ref,
                "requirements": self.stage.manifests.requirements,
                "expireAfter": "720h",
            },
        }
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "demo"},
            "spec": {
                "template": template,
                "limits": {"cpu": "64"},
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "consolidateAfter": "0s",
                    "budgets": [{"nodes": "100%"}, {"nodes": "1", "reasons": ["Drifted"]}],
                },
            },
        }


def deployment(replicas: int) -> Json:
    """Pods of one cpu each."""
    labels = {"app": "web"}
    container = {
        "name": "web",
        "image": "web:1",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
