"""`dovetail doctor` as text: a line for each check, and below it what to do."""

from typing import Final

from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.doctor.findings import Check
from dovetail.answers.wording import wrapped

MARKS: Final = {"holds": "ok  ", "warns": "WARN", "fails": "FAIL", "skipped": "-   "}
WIDEST: Final = 22  # of the names with the text beside them; a longer name has a line of its own above its text


def doctor_text(answer: DoctorAnswer) -> str:
    width = min(WIDEST, max(len(check.name) for check in answer.checks))
    lines = []
    for check in answer.checks:
        lines += _found(check, width)
        if check.advice:
            lines += wrapped("-> ", check.advice, indent=6)
    return "\n".join(lines)


def _found(check: Check, width: int) -> list[str]:
    """What was found, beside its name."""
    head = f"{MARKS[check.verdict]}  {check.name.ljust(width)}  "
    if len(check.name) <= width:
        return wrapped(head, check.found, indent=0)
    return [head.rstrip(), *wrapped("", check.found, indent=len(MARKS[check.verdict]) + 2 + width + 2)]
