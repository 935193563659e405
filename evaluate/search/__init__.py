"""Search with a network at the table: `search(RUN)` in tournaments."""
