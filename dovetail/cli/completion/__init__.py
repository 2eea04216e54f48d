"""Completion for bash, zsh and fish: commands and options from the parser itself, names from the cluster."""
