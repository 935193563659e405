"""Settings of a run, as dataclasses checked on construction."""
