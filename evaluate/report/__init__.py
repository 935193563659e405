"""Reports: data about runs, and the page and the Markdown made from them."""
