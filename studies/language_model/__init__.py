"""The results of the language model's plan: its record, and what docs/language_model.md shows of it.

``python -m studies.language_model`` makes the page's tables and its figure again,
from the plan in params/language_model/ and from the record of this folder. Text between markers on the page
is generated; the rest is written.
"""
