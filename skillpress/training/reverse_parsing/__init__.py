"""Reverse parsing: from a state and the action that is right in it to thoughts that lead there.

    (X, A*) --policy, told A* or not--> v --decode--> th --keep where Parser(th) = A*--> (X, th, A*)

*Language as a Universal Interface for Reinforcement Learning Agents*, section 1.4: "Given good action A_k,
generate multiple thought chains th_k that lead to it. This creates rich (X_k, th_k, A_k) training data".
``targets.py`` finds the pairs (X, A*); ``search.py`` samples, selects and ranks thoughts. Imitation reads the
resulting file (``imitation.thoughts``). Only that file, not this folder, changes the result of a stage.
"""
