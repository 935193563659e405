"""Search players of Tressette: a seat's knowledge, samples of hidden hands, and the players."""
