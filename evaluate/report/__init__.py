"""Reports: data about runs, and the page made from them."""
