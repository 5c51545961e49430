"""Controls of the segmentation cost: what of it is reuse, what is repetition, and what are the names?

Each file is one control, named by an overlay in ``params/critical/methods``:

- ``bigram``: sequences that are *predictable*, without any dictionary.
- ``distinct``: successes of *few names*, without any dictionary.
- ``shuffled``: SegCost whose corpus keeps how often each name occurs in a success, and loses the phrases.
- ``other_tasks``: SegCost by phrases of the other tasks' successes: what *tasks share*.
- ``own_task``: SegCost by phrases of the task's own successes: what one task *repeats*.
"""
