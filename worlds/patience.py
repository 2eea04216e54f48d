"""How long tests wait for an expected event."""

CROWDED = 3  # the limits are for a machine with nothing else to do; they only end a test that would wait for ever
