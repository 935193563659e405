"""Parts of a run common to all kinds of learning."""
