"""Judges the product from outside: recorded results and traffic, takeovers, benchmarks, an independent checker."""
