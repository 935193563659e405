"""Reports: what is known of runs, gathered as plain data, and the page and the Markdown that are made of it."""
