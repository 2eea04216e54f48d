"""What stands around every step, whatever it does: heartbeats, health, guard, traces, lines of the log, failures."""
