"""The contract that every game shares: Game, seeds, packed bits, batch loops, records and the conformance kit."""
