"""The table as a Textual application, for a terminal or a browser. Textual is known in this room alone."""
