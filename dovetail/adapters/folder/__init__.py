"""The port KeptObjects over a folder: one file an object. For one machine, or a volume that all workers share."""
