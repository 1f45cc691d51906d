"""What all tests share: how many examples property tests try."""

from hypothesis import settings

settings.register_profile("fuzz", max_examples=5_000, deadline=None)
