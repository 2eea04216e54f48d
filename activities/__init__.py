"""One step each: observe, decide (core), act (a port), return a small outcome."""
