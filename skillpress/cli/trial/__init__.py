"""`skillpress trial`: does a folder of skills help? The same tasks with and without it."""
