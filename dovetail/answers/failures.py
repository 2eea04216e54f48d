"""The exceptions for a question without an answer."""


class CommandFailed(Exception):
    """The request cannot be carried out or answered; the message says why in one line."""


class NotUnderstood(CommandFailed):
    """The question itself is wrong: an invalid time, an unreadable file."""
