"""The table in plain lines, for pipes and screen readers."""
