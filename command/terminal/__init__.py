"""What a command writes to a terminal or a pipe: progress, plain text, safe characters."""
