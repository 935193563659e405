"""Games with numbered states: numberings, Markov decision processes, and hands as multisets."""
