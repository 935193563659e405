"""Parts of reports for one game: the module with the game's name has `blocks` and `sections`."""
