"""Reverse parsing: from a state and the action that is right in it to thoughts that lead there.

    (X, A*) --policy, told A* or not--> v --decode--> th --keep where Parser(th) = A*--> (X, th, A*)

*Language as a Universal Interface for Reinforcement Learning Agents*, section 1.4: "Given good action A_k,
generate multiple thought chains th_k that lead to it. This creates rich (X_k, th_k, A_k) training data".
``targets.py`` finds the pairs (X, A*), ``search.py`` samples, keeps and ranks. What comes out is imitated
(``imitation.thoughts``); the folder decides no stage's result, the file does.
"""
