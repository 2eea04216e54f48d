"""The Helm charts, and the script that writes the tables of their values."""
