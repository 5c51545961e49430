"""f_agent with a memory outside the prompt: a vector store of what the agent has seen.

*Language as a Universal Interface for Reinforcement Learning Agents* lists it as structured memory: "Extract
information from H_k and store it in an external vector database". Every episode has a store of its own.
f_agent writes an entry for each turn and, if asked to, for each summary and each named fact. The next prompt
shows the last n turns, and as notes the k entries nearest to the current observation.

    M_{k+1} = M_k + entries(O_k, th_k, A_k),   X_{k+1} = (O_{k+1}, last n turns, nearest_k(M_{k+1}, O_{k+1}))

``update.py`` is the state update, ``database.py`` the store (sqlite-vec), ``embeddings.py`` the two ways to
turn a text into a vector, ``facts.py`` what counts as a named fact.
"""
