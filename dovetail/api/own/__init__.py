"""The kinds of dovetail.sh: what platform teams say about when nodes may begin to leave."""
