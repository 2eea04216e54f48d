"""How long one answer may plan: no longer than the worker's own passes, and then it says what it has not looked at.

Who may create pods decides how long planning for all of them takes: 2,400 with sixty preferences each kept a worker
busy for 85 seconds whenever a person asked why pods wait.
"""

import time
from typing import Final

from dovetail.answers.wording import duration_text, plural
from dovetail.background.time_limit import Clock, TimeLimit

PLACING: Final = "DOVETAIL_PASS_LIMIT"
SEARCHING: Final = "DOVETAIL_SEARCH_LIMIT"


class AnswerLimit(TimeLimit):
    """A limit that says what it has cut short."""

    def __init__(self, seconds: float, setting: str, clock: Clock = time.monotonic) -> None:
        """`setting`: where the seconds come from."""
        super().__init__(seconds, clock)
        self._setting = setting

    def note(self, what: str) -> str:
        """That it was up, in words. `what`: what has not been looked at for that."""
        return f"planning for this answer ended after {duration_text(self.seconds)} ({self._setting}): {what}"

    def pods_note(self, count: int) -> tuple[str, ...]:
        """The same of so many waiting pods; nothing if all were reached."""
        waiting = f"{plural(count, 'waiting pod')} {'was' if count == 1 else 'were'} not reached"
        return (self.note(waiting),) if count else ()
