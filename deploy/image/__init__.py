"""The container image, built by scripts of this folder without a registry and without a container runtime."""
