"""A whole small world in one SQLite file: a cluster, a cloud, and a ledger of every call that was made to either."""
