"""ReuseRL's tables: their manifest, the tables that were made here, and the page about both."""
