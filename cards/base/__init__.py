"""Basics that every module may use: errors, bounds of settings, safe files, stopping."""
