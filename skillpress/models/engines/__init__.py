"""Who samples: each engine satisfies ``interface.Engine``."""
