"""Windows in which nodes may begin to leave."""
