"""The replay buffer: transitions and their ring."""
