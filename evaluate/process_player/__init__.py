"""Players that are programs of their own, by lines of JSON; docs/howto/tournaments.md has the protocol."""
