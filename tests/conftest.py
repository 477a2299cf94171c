"""Hypothesis with the same examples every time, so that a failure here is a failure everywhere; a busy machine is none."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same-examples",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same-examples")
