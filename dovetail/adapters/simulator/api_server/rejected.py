"""How the embedded API server says no.

Raised inside a transaction before anything was written, answered with a status code as the real one would; the port
adapters turn it into dovetail.ports.failures, the player never meets it.
"""


class Rejected(Exception):
    """An answer other than success: a code, a reason as metav1.Status has it, and a sentence."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
