"""Compiled code: Numba for CPU and GPU, its cache on disk, bits and random numbers."""
