"""The replay buffer: transitions, ring, priorities."""
