"""Output of commands to a terminal or a pipe: progress, plain text, safe characters."""
