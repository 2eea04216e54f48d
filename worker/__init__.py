"""The process: settings, the composition root, the entry point, logs, and what it answers over HTTP."""
