"""Table as a web page: templates and drawings in page/, one desk for each open page, and the server."""
