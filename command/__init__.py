"""What every command of busso has: settings from conf/ and the command line, and errors as one line."""
