"""What `make bench` runs: inputs that are read, made up or played."""
