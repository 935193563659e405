"""The table: people play the games against rule players and trained agents."""

from busso.one_name import require

require(__name__)
