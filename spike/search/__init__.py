"""Search players of Corellian Spike, which sample hidden cards and dice."""
