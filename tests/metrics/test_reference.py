"""The table of all names says what is printed, and the page in docs is the table."""

from pathlib import Path

from docs.tools.metrics_page import all_published
from docs.tools.metrics_reference import page
from docs.tools.metrics_upstream import UPSTREAM
from dovetail.telemetry.metrics.instruments import OWN_PREFIX

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
# Printed by upstream under names that its page does not list, or ours from before it had them.
BESIDE = {"karpenter_aws_requests_total", "karpenter_aws_request_duration_seconds"}


def test_each_of_upstreams_names_is_printed_with_its_type_or_named_as_left_out() -> None:
    """MET-1."""
    printed = all_published()
    for each in UPSTREAM:
        if each.here.startswith("not here: "):
            assert each.name not in printed, f"{each.name} is printed"
        else:
            assert each.here == "same" or each.here.startswith("different: "), each
            assert each.name in printed, f"{each.name} is not printed"
            assert printed[each.name].type == each.type, each.name


def test_nothing_is_printed_under_upstreams_prefixes_that_upstream_does_not_have() -> None:
    known = {each.name for each in UPSTREAM} | BESIDE
    assert {name for name in all_published() if not name.startswith(OWN_PREFIX)} <= known
    assert len(known) == len(UPSTREAM) + len(BESIDE)


def test_the_page_is_current() -> None:
    """`python -m docs.tools.metrics_page > docs/reference/metrics.md` writes it anew."""
    assert PAGE.read_text() == page(all_published())
