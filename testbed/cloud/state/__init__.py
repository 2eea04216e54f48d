"""What one server holds: the declared world, instances, templates, client tokens, and the ledger of its calls."""
