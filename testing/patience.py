"""How long tests wait for what must come about."""

CROWDED = 3  # the limits are for a machine with nothing else to do; they only end a test that would wait for ever
