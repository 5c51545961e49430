"""The study: the runs that its plan asks for, and the committed record of finished runs."""
