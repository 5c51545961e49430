"""Sessions to skills to a verdict, with policies that are trained here; ``__main__`` has the plan."""
