"""Contract shared by all games: Game, seeds, packed bits, batch loops, records and the conformance kit."""
