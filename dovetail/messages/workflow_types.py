"""The names of the workflow types, for those who start or recognise a workflow without importing it."""

from typing import Final

SCHEDULER: Final = "Scheduler"
CARETAKER: Final = "Caretaker"
LAUNCH_NODE: Final = "LaunchNode"
TERMINATE_NODE: Final = "TerminateNode"
RELEASE_NODE: Final = "ReleaseNode"
DISRUPT_NODES: Final = "DisruptNodes"
INTERRUPTIONS: Final = "Interruptions"
ANSWER_INTERRUPTION: Final = "AnswerInterruption"
GATE: Final = "Gate"
