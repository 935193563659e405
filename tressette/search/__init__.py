"""Search players of Tressette: what a seat knows, samples of it, and the players."""
