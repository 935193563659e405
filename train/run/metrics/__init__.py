"""Curves of a run: their names, metrics.csv, TensorBoard."""
