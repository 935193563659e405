"""Published studies and our runs of them: a module each, with `report(runs, folder, games, seed)`."""
