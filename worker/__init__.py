"""The process: which steps run on which queue, how it starts and stops, what it answers over HTTP."""
