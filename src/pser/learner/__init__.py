"""What learns from a batch: tabular Q-learning and DQN. torch is imported by the modules that need it."""
