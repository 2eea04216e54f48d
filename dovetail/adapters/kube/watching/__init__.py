"""Lists and watches that feed the cache."""
