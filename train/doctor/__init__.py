"""`busso doctor`: the speed and the memory that a run would have on this machine."""
