"""`busso doctor`: speed and memory of a run on this machine."""
