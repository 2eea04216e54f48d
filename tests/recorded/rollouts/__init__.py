"""NodeRollouts in each state, as each version wrote them."""
