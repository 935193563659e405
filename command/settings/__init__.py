"""Settings from conf/ and the command line: composed, checked and quoted."""
