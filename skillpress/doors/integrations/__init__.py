"""Our environments as other libraries know environments."""
