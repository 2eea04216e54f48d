"""Which workflows the tests have started, so that their histories can be recorded (tests/replay/recording.py)."""

from typing import Any

from temporalio.client import Client, Interceptor, OutboundInterceptor, StartWorkflowInput, WorkflowHandle

Execution = tuple[str, str]  # workflow id, run id


class Started(Interceptor):
    """Notes each workflow that a client starts."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.executions: list[Execution] = []
        EVERYWHERE.append(self)

    def in_front_of(self, client: Client) -> Client:
        """A client like this one, whose starts are noted."""
        settings = client.config()
        settings["interceptors"] = [self]
        self.client = Client(**settings)
        return self.client

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Stand between the client and its calls."""
        return _Outbound(next, self)


class _Outbound(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, started: Started) -> None:
        super().__init__(next)
        self.started = started

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        handle = await super().start_workflow(input)
        self.started.executions.append((handle.id, handle.first_execution_run_id or ""))
        return handle


EVERYWHERE: list[Started] = []  # one for each client of the tests
