"""Agents whose model is only reached through a chat-completions server: text in, text out.

It is a folder of its own, apart from ``agents/``, because nothing is ever trained from such episodes: they
have no tokens and no log-probabilities, and an edit here reruns no stage (except for a training with a
teacher).

    agent.py        the agent; it asks by client.py
    client.py       one question, until it is answered; connection.py sends it, form.py says in which form
    outcomes.py     what can come of a question; answers.py and refusals.py read it in a server's reply
    offers.py       what a server says of its models; server.py is where it is, journal.py what it has cost
"""
