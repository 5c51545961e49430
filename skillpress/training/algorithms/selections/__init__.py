"""Which rollouts of a step teach (``algorithm.select``), one file each."""
