"""The parts of a run that all kinds of learning share."""
