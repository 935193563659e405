"""What reports say of one game alone: the module of its name here has `blocks`, `sections` and `remarks`."""
