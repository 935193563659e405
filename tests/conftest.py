"""Settings of all tests."""

from hypothesis import settings

# Compiled functions take their time at the first call, and shared machines at any.
settings.register_profile("busso", deadline=None, derandomize=True)
settings.load_profile("busso")
