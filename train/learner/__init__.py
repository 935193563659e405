"""DQN learner: replay buffer, loss, optimizer, schedules and metrics."""
