"""Games of one's own, each in one file: the layout of observations, `game(...)` with its defaults, and the trial."""
