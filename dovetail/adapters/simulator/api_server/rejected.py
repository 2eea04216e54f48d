"""How the simulated API server refuses a request.

Raised inside a transaction before anything was written, with the status code that the real server would answer; the
player never causes one.
"""

from dovetail.model.values.json import Json


class Rejected(Exception):
    """An answer other than success: a code, a reason as metav1.Status has it, a sentence, and causes."""

    def __init__(self, code: int, reason: str, message: str, *causes: Json) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = causes

    def status(self) -> Json:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code, "message": self.message}
        return {**body, "reason": self.reason, "details": {"causes": list(self.causes)}}
