"""A text world in which something seen early is needed late, and agents that remember in different ways."""
