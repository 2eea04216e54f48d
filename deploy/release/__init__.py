"""The steps of a release. Each is a command that a workflow in .github calls, and that a test runs."""
