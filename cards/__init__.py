"""What every game shares: the Game contract, seeds, packed bits, batch loops, records and the conformance kit."""

from busso.one_name import require

require(__name__)
