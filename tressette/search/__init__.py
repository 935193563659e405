"""Search players of Tressette, and what they know and compute."""
