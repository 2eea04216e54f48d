"""The closed list of reasons for disruption: every entry is known wherever reasons are read."""

from typing import get_args

import pytest

from dovetail.answers.explain.explain_node_text import TITLES
from dovetail.api.karpenter.node_pool import BudgetReason
from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.choose import METHODS
from dovetail.disruption.plan import target_of
from dovetail.disruption.rounds import Round
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.notices.disruptions import replacing
from worlds.disruption import a_pair, a_pool, a_world

every_reason = pytest.mark.parametrize("reason", DisruptionReason)


@every_reason
def test_a_reason_has_a_method_that_the_command_line_names(reason: DisruptionReason) -> None:
    methods = [method for method in METHODS if method.reason is reason]
    assert methods
    assert all(TITLES[method.name] for method in methods)


@every_reason
def test_the_api_knows_the_reason_by_which_budgets_limit_it(reason: DisruptionReason) -> None:
    assert reason.budget in get_args(BudgetReason)


@every_reason
def test_a_budget_closed_for_a_reason_leaves_nothing_of_it(reason: DisruptionReason) -> None:
    world = a_world([a_pair("n1")], pools=[a_pool(budgets=(Budget(nodes="0", reasons=(reason.budget,)),))])
    found = allowances(world, DisruptionSettings())
    assert {r for r in DisruptionReason if found["a", r].left == 0} == {
        r for r in DisruptionReason if r.budget == reason.budget
    }


@every_reason
def test_people_read_the_reason_when_a_replacement_starts(reason: DisruptionReason) -> None:
    claim = a_pair("n1").claim
    launching, waiting = replacing(claim, reason.label)
    assert launching.message == f"Launching NodeClaim: {reason.value}"
    assert waiting.reason == "DisruptionWaitingReadiness"


def test_a_claim_that_replaces_no_node_is_announced_as_no_replacement() -> None:
    assert replacing(a_pair("n1").claim, "provisioned") == ()


@every_reason
def test_a_target_names_the_policy_where_the_policy_decides(reason: DisruptionReason) -> None:
    [candidate] = Round(a_world([a_pair("n1")]), DisruptionSettings()).screening.graceful
    assert bool(target_of(candidate, reason).policy) == reason.is_governed_by_policy


def test_karpenters_reasons_are_spelled_as_karpenter_spells_them() -> None:
    known = (DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED)
    assert [(r.value, r.label, r.budget) for r in known] == [
        ("Empty", "empty", "Empty"),
        ("Drifted", "drifted", "Drifted"),
        ("Underutilized", "underutilized", "Underutilized"),
    ]


def test_an_expired_node_is_limited_as_a_drifted_one() -> None:
    expired = DisruptionReason.EXPIRED
    assert (expired.value, expired.label, expired.budget) == ("Expired", "expired", "Drifted")


def test_a_label_finds_its_reason_again() -> None:
    assert [DisruptionReason.of_label(reason.label) for reason in DisruptionReason] == list(DisruptionReason)


def test_answers_about_other_nodes_are_those_of_the_closed_list() -> None:
    """A node that has not drifted is healthy: no refusal is counted for it."""
    assert {why for why in WhyNot if why.concerns_others} == {
        WhyNot.UNMANAGED,
        WhyNot.STATIC_POOL,
        WhyNot.DYNAMIC_POOL,
        WhyNot.NOT_DRIFTED,
        WhyNot.NOT_UNHEALTHY,
        WhyNot.NOT_EXPIRED,
        WhyNot.NOT_ASKED_FOR,
        WhyNot.NOT_REQUESTED,
        WhyNot.UNDER_COST,
        WhyNot.NOT_UNDER_COST,
    }
