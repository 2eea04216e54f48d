"""The tests of Dovetail. `make test` runs them all; `make check` runs those that need no server."""
