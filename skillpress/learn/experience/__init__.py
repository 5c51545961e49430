"""What training learns from beside the rollouts of its algorithm: further attempts, and what they teach."""
