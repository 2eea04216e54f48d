"""A snapshot, compiled for placement: made once, used by any number of passes."""
