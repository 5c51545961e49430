"""The study: which runs its plan asks for, and the committed record of those that are finished."""
