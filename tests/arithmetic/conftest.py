"""Hypothesis with the same examples every time, so that a failure here is a failure everywhere."""

from hypothesis import settings

settings.register_profile("same-examples", derandomize=True, deadline=None, max_examples=100, database=None)
settings.load_profile("same-examples")
