"""Games to watch: live, recorded or saved, with commentary."""
