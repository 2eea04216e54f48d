"""What tests use to drive the cloud: the control API, declared faults, and the messages of the interruption queue."""
