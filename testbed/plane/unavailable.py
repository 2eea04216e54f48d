"""The error for a machine on which there can be no control plane.

It is an answer about the machine, not a defect of the plane: a plane that fails to start raises PlaneError, and that
fails the tests.
"""


class TestbedUnavailable(Exception):
    """The binaries are neither given nor cached, and cannot be built here. The text is one line for a person."""

    __test__ = False  # the name begins like a test class; pytest must not collect it
