"""Carries a proposal out: a pass of its own, in which each pod is tried first where the proposal wants it.

The pass asks of every pod what the first one asked when it placed it, preferences included, and in the same order. So
nothing that was found by arithmetic alone is believed: a pod that the rules refuse there is placed like any other pod.
Where domains were dealt anew, the pods for new nodes come in the order in which the kube-scheduler will bind them.
"""

from collections.abc import Collection, Sequence

from dovetail.model.pods import Pod
from dovetail.placement.constraints.demands import Demand
from dovetail.placement.constraints.reservations import NONE
from dovetail.placement.cost.carrying_out.target import Target
from dovetail.placement.cost.reading.dealing import turn
from dovetail.placement.search.on_proposed_nodes import ReservationRefusal
from dovetail.placement.search.solve import Pass


class Guide:
    """The drafts of one pass that stand for targets."""

    def __init__(self, before: Pass, targets: Sequence[Target], last: Collection[str], in_turn: bool) -> None:
        """`last`: UIDs of pods that come after all others, because no group had counted them in a domain. `in_turn`:
        in the kube-scheduler's order."""
        self.before = before
        self._last = last
        self._in_turn = in_turn
        self.run = before.again()
        self._target = {pod.uid: number for number, target in enumerate(targets) for pod in target.pods}
        self._targets = targets
        self._draft: dict[int, int] = {}
        self._promised = {number: target.held for number, target in enumerate(targets) if target.held}
        for held in self._promised.values():
            self.run.drafts.reservations.exchange(NONE, held)
        self._standing = {pod.uid: bit for bit, pods in before.nodes.placed.items() for pod in pods}

    def carry_out(self) -> Pass:
        before, run = self.before, self.run
        placed = sorted(before.placed_pods(), key=self._when)
        refused = [each.pod for each in before.refused.values()]
        run.prepare([*placed, *refused])
        demands = {pod.uid: run.same_demand(before.demands_by_uid[pod.uid]) for pod in placed}
        late: list[Pod] = []
        for pod in placed:
            demand = demands[pod.uid]
            if not self._place(demand, pod):
                late.append(pod)
        moved = True
        while late and moved:  # a spread may admit later what it refused before
            waiting, late = late, []
            for pod in waiting:
                if not self._place(demands[pod.uid], pod):
                    late.append(pod)
            moved = len(late) < len(waiting)
        self.strays = len(late)
        late = [pod for pod in late if not run.place_as(demands[pod.uid], pod)]
        run.run([*late, *refused])
        return run

    def _when(self, pod: Pod) -> tuple[bool, bool, int, float, str]:
        """Pods on nodes that stand come as they did, and before those for new nodes if these have an order of their
        own."""
        is_last = pod.uid in self._last
        if not self._in_turn:
            return False, is_last, 0, 0.0, ""
        if pod.uid not in self._target:
            return False, False, 0, 0.0, ""
        return True, is_last, *turn(pod)

    def _place(self, demand: Demand, pod: Pod) -> bool:
        run, number = self.run, self._target.get(pod.uid)
        if number is None:
            done = run.nodes.place_on(demand, pod, self._standing[pod.uid])
        elif number in self._draft:
            done = run.drafts.place_on(demand, pod, self._draft[number])
        else:
            if held := self._promised.pop(number, NONE):
                run.drafts.reservations.exchange(held, NONE)
            done = self._open(demand, pod, self._targets[number])
            if done:
                self._draft[number] = len(run.drafts.made) - 1
        if done:
            run.settled(demand, pod)
        return done

    def _open(self, demand: Demand, pod: Pod, target: Target) -> bool:
        """A draft for the target; one of types without a reservation where such capacity exists and is all promised."""
        template = target.template
        for rows in (target.rows, target.rows & ~template.reserved_rows):
            try:
                return self.run.drafts.place_on_new_of(demand, pod, template, target.start, rows)
            except ReservationRefusal:
                continue
        return False
