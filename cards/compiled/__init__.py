"""Compiled code: Numba with its on-disk cache, batch loops, bits and random numbers."""
