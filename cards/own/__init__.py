"""Games and players of the user, each in one file: observation layouts, defaults of a game, and its trial."""
