"""`dovetail doctor` as text: the texts stand beside short names, whatever the longest name is."""

from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.doctor.findings import Check, failed, fine, rest_skipped
from dovetail.answers.doctor.text import WIDEST, doctor_text
from dovetail.answers.wording import fitting

TEMPORAL = ("search attributes", "retention", "identity", "Scheduler", "Caretaker", "Interruptions", "workers")


def printed(*checks: Check, width: int = 80) -> list[str]:
    with fitting(width):
        return doctor_text(DoctorAnswer(cluster="shop", checks=checks)).splitlines()


def test_checks_that_were_not_made_are_named_in_the_text_and_not_in_the_name() -> None:
    rest = rest_skipped("Temporal", "the Temporal server does not answer", ", ".join(TEMPORAL))

    assert rest.name == "rest of Temporal"
    assert all(name in rest.found for name in TEMPORAL)
    assert len(printed(rest)) < 5


def test_a_long_name_takes_no_room_from_the_other_texts() -> None:
    """At 80 columns the text of a NodePool with a long name had a column of one character."""
    pool = failed(f"NodePool {'x' * 63}", "no subnet has the tag karpenter.sh/discovery=shop", "see its NodeClass")
    clock, name, text, _ = printed(fine("clock", "right"), pool)

    assert clock == f"ok    {'clock'.ljust(WIDEST)}  right"
    assert name == f"FAIL  {pool.name}"
    assert text.strip() == pool.found and text.index("no subnet") == clock.index("right")
