"""Several learners of one run: how they start, what they tell each other, and the average of their gradients."""
