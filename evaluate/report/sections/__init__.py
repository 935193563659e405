"""Sections of a report, a module each."""
