"""Several learners of one run: their start, their messages, and the average of their gradients."""
