"""The ground that the acceptance tests on real servers stand on, and what they ask of it."""
