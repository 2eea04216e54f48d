"""Real servers for tests, with workers, pools and pods on them."""
