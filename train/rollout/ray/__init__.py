"""Ray rollouts, by a separate process that uses Ray; docs/explanation/architecture.md lists the files and processes."""
