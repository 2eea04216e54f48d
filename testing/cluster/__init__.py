"""A ground of a real control plane, with workers, pools and pods on it."""
