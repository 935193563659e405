"""Published studies and our runs of them, one module each, with `report(runs, folder, games, seed)`."""
