"""Who samples: each engine satisfies ``engine.Engine``."""
