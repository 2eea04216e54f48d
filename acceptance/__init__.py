"""Judges the product from outside: recorded results, recorded traffic, takeovers, benchmarks, an independent checker."""
