"""Table as a Textual application, for a terminal or a browser. Only this package imports Textual."""
