"""Rollout workers, in this process, in threads, on a GPU or by Ray."""
