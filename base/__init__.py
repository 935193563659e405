"""Ground of all packages, which knows no card game: errors, bounds, files, locks, system calls and text streams."""
