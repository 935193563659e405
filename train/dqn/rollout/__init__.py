"""Rollout workers and what runs them: in this process, in threads, on a GPU, by Ray."""
