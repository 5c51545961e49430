"""The macro policy of a language agent: the probabilities of its actions, whatever tokens express them.

    pi(A | X) = sum over v of [Parser(Decode(v)) = A] p(v | X)

(*Language as a Universal Interface for Reinforcement Learning Agents*, 1.4.) An action can be expressed in
many ways, so the probability of the sampled response is only a part of its action's probability.
``enumeration.py`` computes the sum over the likely responses and the mass that it leaves out, ``sampling.py``
estimates the sum from samples, and ``actions.py`` holds the quantities that are read from both.

A is the text that the parser gives to the environment. Two wordings that the environment treats alike are two
actions here. All responses without an action count as the same action, the empty text.
"""
