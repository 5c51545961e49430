"""What a training keeps on disk: checkpoints to go on from, and the weights that the run leaves."""
