"""Deep Q-learning: rollouts, transitions, replay buffer, network, learner and the training loop."""
