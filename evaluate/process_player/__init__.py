"""Players that are programs of their own, by lines of JSON; docs/tournaments.md has the protocol."""
