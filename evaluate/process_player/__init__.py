"""Players that are programs of their own and exchange lines of JSON; docs/howto/tournaments.md has the protocol."""
