"""Agents whose model is only reached through a chat-completions server: text in, text out.

It is a folder of its own, apart from ``agents/``, because nothing is ever trained from such episodes: they
have no tokens and no log-probabilities, and an edit here reruns no stage.
"""
