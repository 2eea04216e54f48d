"""Refuses a call that the policies do not allow, with the service's own code."""

from testbed.cloud.http.errors import AwsError
from testbed.cloud.rights.asked import asked_by
from testbed.cloud.rights.evaluator import allows
from testbed.cloud.rights.policies import statements, values_for
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.cloud import Cloud, Work

CODES = {
    "ec2": ("UnauthorizedOperation", 403),
    "iam": ("AccessDenied", 403),
    "sqs": ("AccessDenied", 403),
}  # of the others: AccessDeniedException, 400
USER = f"arn:aws:sts::{ACCOUNT}:assumed-role/DovetailController/worker"


class Guard:
    """Stands before every call where the server enforces the policies."""

    def __init__(self, cloud: Cloud) -> None:
        self._enforced = cloud.settings.enforce_policies
        self._statements = statements(values_for(cloud.settings, str(cloud.world["region"])))

    def check(self, work: Work) -> None:
        """Raises AWS's refusal of the first thing that is not allowed. Called under the cloud's lock."""
        if not self._enforced:
            return
        for asked in asked_by(work):
            if not allows(self._statements, asked):
                code, status = CODES.get(work.call.service, ("AccessDeniedException", 400))
                raise AwsError(
                    code,
                    f"You are not authorized to perform this operation. User: {USER} is not authorized to perform: "
                    f"{asked.action} on resource: {asked.resource} because no identity-based policy allows the "
                    f"{asked.action} action.",
                    status,
                )
