"""Published studies and our runs of them: a module each, with `write(runs, folder, games, seed)`."""
