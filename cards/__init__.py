"""What every game shares: the Game contract, seeds, packed bits, batch loops, records and the conformance kit."""
