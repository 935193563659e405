"""The parts of a run that do not depend on what learns."""
