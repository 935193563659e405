"""Lock of a folder: its owner, and how a silent owner is replaced."""
