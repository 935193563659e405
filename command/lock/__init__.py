"""The lock of a folder: its owner, how a silent owner is replaced, and a trial of a file system's locks."""
