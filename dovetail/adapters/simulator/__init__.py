"""The simulated world: a cluster, a cloud, and a ledger of every call to either, in one SQLite file.

Users know it as the embedded world (CLUSTER=embedded, EmbeddedNodeClass, provider ids that begin with embedded://).
"""
