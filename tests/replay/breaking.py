"""Changes to the workflows that would break what runs in a cluster, each of which the recorded histories must notice.

Each is a change that a person may make in good faith. Where one of the texts has changed, write the change anew for the
code as it is; a change whose subject is gone may go with it. `noticed_by` is the shortest history that notices it,
replayed before all others, which saves half of the time.
"""

from typing import Final

from tests.replay.changed import Change

BREAKING: Final = (
    Change(
        what="replacements come after the drain of a pool that is drained first",
        noticed_by="a-pool-that-asks-for-it-is-drained-before-the-delete@0.1.0",
        file="disrupt_nodes.py",
        edits=(
            (
                "        if self.given.command.replacements:\n            self.enter(",
                """        if self.given.command.drain_first:
            await asyncio.gather(*[self.drain(target) for target in self.marked])
        if self.given.command.replacements:
            self.enter(""",
            ),
            (
                "        if self.given.command.drain_first:\n            self.enter(",
                "        if False:\n            self.enter(",
            ),
        ),
        types=("DisruptNodes",),
    ),
    Change(
        what="a refused mark fails a pure delete too",
        noticed_by="a-pure-delete-goes-on-with-the-nodes-that-could-be-marked@0.1.0",
        file="disrupt_nodes.py",
        edits=(("if outcome.refused and (command.replacements or not self.marked):", "if outcome.refused:"),),
        types=("DisruptNodes",),
    ),
    Change(
        what="the replacements are given back before the marks are taken off",
        noticed_by="a-refused-mark-undoes-a-command-with-replacements@0.1.0",
        file="disrupt_nodes.py",
        edits=(("(self.unmark, self.give_back)", "(self.give_back, self.unmark)"),),
        types=("DisruptNodes",),
    ),
    Change(
        what="a failed unmark keeps the replacements",
        noticed_by="marks-that-cannot-be-taken-off-do-not-keep-the-replacements@0.1.0",
        file="disrupt_nodes.py",
        edits=(
            (
                "                failures.append(failure)\n",
                "                failures.append(failure)\n                break\n",
            ),
        ),
        types=("DisruptNodes",),
    ),
    Change(
        what="nodes are deleted before their replacements are ready",
        noticed_by="a-replacement-that-fails-takes-the-mark-off-and-is-given-back@0.1.0",
        file="disrupt_nodes.py",
        edits=(("            await self.await_replacements(claims)\n", ""),),
        types=("DisruptNodes",),
    ),
    Change(
        what="several claims are deleted one by one again",
        noticed_by="several-nodes-are-deleted-in-one-step-and-each-gets-its-termination@0.1.0",
        file="disrupt_nodes.py",
        edits=(
            (
                "        if len(self.marked) == 1:\n            return await self.delete(self.marked[0])\n",
                """        if len(self.marked) < 200:
            return (await asyncio.gather(*[self.delete(target) for target in self.marked]))[0]
""",
            ),
        ),
        types=("DisruptNodes",),
    ),
    Change(
        what="a disruption ends before its nodes are gone",
        noticed_by="an-empty-node-is-marked-deleted-and-awaited@0.1.0",
        file="disrupt_nodes.py",
        edits=(
            (
                "            await start_terminations(given.cluster, ",
                "            return self.record(Undone())\n            await start_terminations(given.cluster, ",
            ),
        ),
        types=("DisruptNodes",),
    ),
    Change(
        what="a cancel that comes too late is not answered",
        noticed_by="after-the-delete-an-update-is-refused-and-a-signal-is-answered@0.1.0",
        file="disrupt_nodes.py",
        edits=(
            (
                "        if not self.committed:\n            self.call_off(",
                "        if True:\n            self.call_off(",
            ),
        ),
        types=("DisruptNodes",),
    ),
    Change(
        what="ten are started at once instead of twenty",
        noticed_by="several-nodes-are-deleted-in-one-step-and-each-gets-its-termination@0.1.0",
        file="claim_owners.py",
        edits=(("STARTS_AT_ONCE = 20", "STARTS_AT_ONCE = 10"),),
        types=("Scheduler", "DisruptNodes"),
    ),
    Change(
        what="a node is drained although its instance is gone",
        noticed_by="without-a-living-node-nothing-is-waited-for-instance-gone-before@0.1.0",
        file="terminate_node.py",
        edits=(("if departure.nodes and not departure.instance_gone:", "if departure.nodes:"),),
        types=("TerminateNode",),
    ),
    Change(
        what="an instance is terminated before its volumes are detached",
        noticed_by="a-termination-drains-detaches-terminates-and-releases@0.1.0",
        file="terminate_node.py",
        edits=(
            (
                "        if drained.instance_gone or drained.detached:\n            return drained.unwritten\n",
                "        return False\n",
            ),
        ),
        types=("TerminateNode",),
    ),
    Change(
        what="the wait for volumes is not skipped for an instance that is gone",
        noticed_by="without-a-living-node-nothing-is-waited-for-instance-gone-meanwhile@0.1.0",
        file="terminate_node.py",
        edits=(("if drained.instance_gone or drained.detached:", "if drained.detached:"),),
        types=("TerminateNode",),
    ),
    Change(
        what="volumes that the drain found detached are waited for again",
        noticed_by="a-step-that-did-the-next-ones-work-is-not-followed-by-it-detached@0.1.0",
        file="terminate_node.py",
        edits=(("if drained.instance_gone or drained.detached:", "if drained.instance_gone:"),),
        types=("TerminateNode",),
    ),
    Change(
        what="a drain that searches find from the start is shown once more",
        noticed_by="a-drain-that-searches-find-from-the-start-is-not-shown-once-more-TerminateNode-1@0.1.0",
        file="attributes.py",
        edits=(("if phase in LASTING and not is_known:", "if phase in LASTING:"),),
        types=("TerminateNode",),
    ),
    Change(
        what="a claim that was released with the end of its instance is released again",
        noticed_by="a-step-that-did-the-next-ones-work-is-not-followed-by-it-released@0.1.0",
        file="terminate_node.py",
        edits=(("        if not ended.released:\n", "        if True:\n"),),
        types=("TerminateNode",),
    ),
    Change(
        what="a launch that runs out of time is not given up",
        noticed_by="a-node-that-does-not-register-in-time-is-given-up@0.1.0",
        file="launch_node.py",
        edits=(('if outcome.kind == "timed_out":', 'if outcome.kind == "never":'),),
        types=("LaunchNode",),
    ),
    Change(
        what="a launch without capacity becomes a termination without a delete",
        noticed_by="a-claim-that-cannot-be-launched-is-deleted-and-terminated-under-the-same-id-timed-out@0.1.0",
        file="launch_node.py",
        edits=(
            (
                "                return await self.give_up(_ENDINGS[launched.kind], launched.message)\n",
                '                return "deleting"\n',
            ),
        ),
        types=("LaunchNode",),
    ),
    Change(
        what="a claim that is deleted while it is launched does not become its termination",
        noticed_by="a-claim-deleted-while-it-is-launched-becomes-its-termination-launching@0.1.0",
        file="launch_node.py",
        edits=(('        if ending == "deleting":\n', '        if ending == "never":\n'),),
        types=("LaunchNode",),
    ),
    Change(
        what="a node that came without its taint is not spoken of",
        noticed_by="a-node-that-came-without-its-taint-is-reported@0.1.0",
        file="launch_node.py",
        edits=(("            await self.publish_taint_missing(joined.node)\n", ""),),
        types=("LaunchNode",),
    ),
    Change(
        what="a released node is not drained",
        noticed_by="a-node-without-a-claim-is-released-when-pods-and-volumes-are-gone-instance-gone-meanwhile@0.1.0",
        file="release_node.py",
        edits=(("if departure.nodes and not departure.instance_gone:", "if False:"),),
        types=("ReleaseNode",),
    ),
    Change(
        what="a gate that waits before it looks",
        noticed_by="a-version-of-which-nothing-is-wrong-passes@0.1.0",
        file="gate.py",
        edits=(
            (
                "            await workflow.execute_activity_method(\n",
                "            await workflow.sleep(1)\n            await workflow.execute_activity_method(\n",
            ),
        ),
        types=("Gate",),
    ),
    Change(
        what="a wait after a plan that is dropped",
        noticed_by="a-held-plan-travels-with-the-request-until-it-is-judged-drop@0.1.0",
        file="scheduler.py",
        edits=(
            (
                '                self.note(f"dropped a',
                '                await workflow.sleep(1)\n                self.note(f"dropped a',
            ),
        ),
        types=("Scheduler",),
    ),
    Change(
        what="the next disruption is planned before the marks of the last are seen",
        noticed_by="no-carry-out-loses-its-child-in-many-generations-with-pokes-8@0.1.0",
        file="scheduler.py",
        edits=(("        if self.state.awaiting:\n", "        if False:\n"),),
        types=("Scheduler",),
    ),
    Change(
        what="of the held plans that are due together only the first is carried out",
        noticed_by="held-plans-that-are-due-together-are-marked-before-the-next-decision@0.1.0",
        file="scheduler.py",
        edits=(("*[other.plan for other in answer.others]):", "):"),),
        types=("Scheduler",),
    ),
    Change(
        what="disruptions of one plan are started all at once",
        noticed_by="more-launches-and-disruptions-than-begin-at-once-are-started-in-parts@0.1.0",
        file="scheduler.py",
        edits=(("in_parts(plan.commands)", "[plan.commands]"),),
        types=("Scheduler",),
    ),
    Change(
        what="the claims of a plan are left to the Caretaker to be launched",
        noticed_by="a-claim-that-has-its-owner-already-holds-nothing-up@0.1.0",
        file="scheduler.py",
        edits=(("            await start_launches(self.state.cluster, outcome)\n", ""),),
        types=("Scheduler",),
    ),
    Change(
        what="launches that the creating step has started are started as children too",
        noticed_by="launches-that-the-creating-step-has-started-are-no-children@0.2.0",
        file="claim_owners.py",
        edits=(("() if created.owned else created.claims", "created.claims"),),
        types=("Scheduler",),
    ),
    Change(
        what="terminations that the deleting step has started are started as children too",
        noticed_by="what-the-steps-have-started-is-not-started-again-1@0.2.0",
        file="disrupt_nodes.py",
        edits=(("if not (await self.delete_all()).owned:", "if await self.delete_all():"),),
        types=("DisruptNodes",),
    ),
    Change(
        what="the Caretaker carries its orders out one after another",
        noticed_by="an-order-that-fails-stops-neither-the-others-nor-the-next-look@0.1.0",
        file="caretaker.py",
        edits=(
            (
                "            await asyncio.gather(*[self.carry_out(order) for order in found.orders])\n",
                "            for order in found.orders:\n                await self.carry_out(order)\n",
            ),
        ),
        types=("Caretaker",),
    ),
    Change(
        what="what the cluster reports of itself is not kept",
        noticed_by="what-the-cluster-reports-stands-in-the-memo-of-this-run-and-the-next@0.2.0",
        file="caretaker.py",
        edits=(("        workflow.upsert_memo({REPORT: found})\n", "        self.show()\n"),),
        types=("Caretaker",),
    ),
    Change(
        what="the claims of a static pool are left without owners until the next look",
        noticed_by="a-static-pool-is-filled-and-the-new-claims-get-their-owners@0.1.0",
        file="caretaker.py",
        edits=(("        await start_launches(self.given.cluster, outcome)\n", ""),),
        types=("Caretaker",),
    ),
    Change(
        what="a loop whose turn has failed does not wait",
        noticed_by="a-poke-ends-the-wait-after-a-failure@0.1.0",
        file="loops.py",
        edits=(("        await self.pause(name, trouble.pause)\n", ""),),
        types=("Scheduler", "Caretaker", "Interruptions"),
    ),
    Change(
        what="a singleton with a long history goes on",
        noticed_by="reading-goes-on-hour-after-hour-and-begins-as-new@0.1.0",
        file="renewal.py",
        edits=(("    if max_history and", "    if False and"),),
        types=("Scheduler", "Caretaker", "Interruptions"),
    ),
    Change(
        what="a poke wakes nobody",
        noticed_by="a-poke-starts-the-reading-anew@0.1.0",
        file="interruptions.py",
        edits=(("        self.loops.wake()\n", "        self.show()\n"),),
        types=("Interruptions",),
    ),
    Change(
        what="the terminations of a burst are started at once too",
        noticed_by="the-terminations-of-a-burst-are-left-to-the-caretaker@0.1.0",
        file="interruptions.py",
        edits=(("if len(given.interruptions) < BURST:", "if True:"),),
        types=("AnswerInterruption",),
    ),
    Change(
        what="the answer to a warning leaves the termination to the Caretaker",
        noticed_by="a-warning-is-answered-by-a-delete-and-its-termination@0.1.0",
        file="interruptions.py",
        edits=(("if len(given.interruptions) < BURST:", "if False:"),),
        types=("AnswerInterruption",),
    ),
    Change(
        what="a short phase is written to the search attributes too",
        noticed_by="a-claim-that-has-its-owner-already-holds-nothing-up@0.1.0",
        file="attributes.py",
        edits=(('        "initialising",\n', '        "initialising",\n        "tainting",\n        "launching",\n'),),
        types=("LaunchNode", "TerminateNode"),
    ),
)
