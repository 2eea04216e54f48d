"""How the simulated API server refuses a request.

Raised inside a transaction before anything was written, with the status code that the real server would answer. The
ports turn it into a failure of dovetail.ports.failures; the player never causes one.
"""


class Rejected(Exception):
    """An answer other than success: a code, a reason as metav1.Status has it, and a sentence."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
