"""The macro policy of a language agent: the probabilities of its actions, whatever tokens say them.

    pi(A | X) = sum over v of [Parser(Decode(v)) = A] p(v | X)

(*Language as a Universal Interface for Reinforcement Learning Agents*, 1.4.) One action can be said in many
ways, so the probability of the response that was sampled is only a part of its action's. ``enumeration.py``
has the sum over the likely responses and what is left out of it, ``sampling.py`` an estimate from samples,
``actions.py`` what both are asked for.

A is what the parser hands to the environment. Two wordings that the environment reads alike are two actions
here, and every response that holds no action is the same one, the empty text.
"""
