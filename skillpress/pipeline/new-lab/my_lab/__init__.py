"""What this lab adds to skillpress, an environment and an algorithm; params/ names them ``module:name``."""
