"""What every module may need: errors, bounds of settings, safe files, stopping."""
