"""How long busso and its peers take to a given strength: `python -m tests.bench time_to_strength`."""
