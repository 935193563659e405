"""`python -m train doctor`: what a run would get on this machine, and its memory."""
