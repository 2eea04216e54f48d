"""How an answer says that there is none."""


class CommandFailed(Exception):
    """What was asked cannot be done or answered; the message is the one line that says why."""


class NotUnderstood(CommandFailed):
    """The question itself is wrong: a time that is none, a file that cannot be read."""
