"""Answers: the outside world, translated into the words of core and ports."""
