"""Time of busso and its peers to a given strength: `python -m tests.bench time_to_strength`."""
