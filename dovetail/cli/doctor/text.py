"""`dovetail doctor` as text: a line for each check, and below it what to do."""

from typing import Final

from dovetail.cli.doctor.doctor import DoctorAnswer
from dovetail.cli.wording import wrapped

MARKS: Final = {"holds": "ok  ", "warns": "WARN", "fails": "FAIL", "skipped": "-   "}


def doctor_text(answer: DoctorAnswer) -> str:
    """The whole answer."""
    width = max(len(check.name) for check in answer.checks)
    lines = []
    for check in answer.checks:
        lines += wrapped(f"{MARKS[check.verdict]}  {check.name.ljust(width)}  ", check.found, indent=0)
        if check.advice:
            lines += wrapped("-> ", check.advice, indent=6)
    return "\n".join(lines)
