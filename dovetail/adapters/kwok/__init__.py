"""The cloud kwok: instances are Node objects without a machine, which the kwok controller plays."""
