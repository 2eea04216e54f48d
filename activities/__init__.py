"""The steps of workflows: each observes, decides by a pure function, acts through a port, and returns a small outcome.

A file whose name is a verb (`drain_node.py`, `await_orders.py`) holds the step of that name, or those that it names; a
file whose name is a noun (`evictor.py`, `finders.py`) is a helper of the steps beside it. `shared/` is for all.
"""
