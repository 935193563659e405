"""Players by name, tournaments on duplicate deals, statistics, replays of records."""

from busso.one_name import require

require(__name__)
