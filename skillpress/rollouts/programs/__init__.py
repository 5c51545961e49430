"""Programs with their own loop: they call a model over HTTP, and every call is recorded as a step.

A *program* is an agent that runs its own loop. It keeps its own history, tools and sub-agents, and knows
the model only by a base URL and a key. An ``Endpoint`` (``endpoint.py``) answers in the three forms that
clients speak: chat completions, responses, messages. Each episode has a key, and each key a ``Session``,
which hands one request after the other to the thread that plays the episode. So a program is an
*environment*: its next request is the observation, and the model's answer is the action.

    program --HTTP--> Endpoint --ModelRequest--> ProgramAgent --tokens--> engine
            <--HTTP--          <----Reply------                <--tokens--

``forms/`` translates the three forms into one ``ModelRequest`` and one ``Reply`` back. ``tool_calls.py``
reads the calls in a sampled text. ``launch.py`` starts commands, ``functions.py`` calls functions in worker
processes.
"""

from __future__ import annotations
