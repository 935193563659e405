"""Settings from conf/ and the command line: composed, checked, quoted, and the keys that were renamed."""
