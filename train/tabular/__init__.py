"""Tabular learning."""
