"""Files of a training: checkpoints to resume from, and the weights that the run leaves."""
