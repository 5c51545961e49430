"""Agents whose model can be reached only through a chat-completions server: text in, text out.

This package is separate from ``agents/`` because nothing is ever trained from such episodes: they have no
tokens and no log-probabilities. An edit here therefore reruns no stage, except a training with a teacher.

    agent.py        the agent that plays environments; server_agent.py is what it shares with programs' models
    client.py       one question, until it is answered; connection.py sends it, form.py builds its parameters
    question.py     the conversation that a server is asked to continue
    outcomes.py     the possible outcomes of a question; answers.py and refusals.py parse them from replies
    server.py       a server's address; journal.py keeps its cost
"""
