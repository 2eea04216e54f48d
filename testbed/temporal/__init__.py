"""A Temporal as it is run in earnest: four services as processes, PostgreSQL behind them, TLS between all.

History runs twice, so that one of the two may be lost. `make temporal` starts it and prints what to type; with
`DOVETAIL_TESTBED_TEMPORAL=postgres` the system tests and `make up` run on it in place of the development server.
"""
