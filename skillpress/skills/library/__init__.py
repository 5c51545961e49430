"""SkillRL's library S = S_g ∪ S_k, skills in words that prompts show, as ReuseRL's Appendix B (Eq. 9) has it.

    J(θ, S) = E[ (1/n) Σ_i R(τ_i^S) ],   S ← Evolve(S, failures of training tasks)

``library.py`` holds the library with its history, ``retrieval.py`` chooses what a task is shown,
``advice.py`` puts that into words, ``phrases.py`` and ``teacher.py`` make new skills. Three things differ
from SkillRL (Xia et al. 2026, arXiv:2602.08234). Its library evolves from failures of *validation* tasks
(D_val in Eq. 9), and its policy is then chosen on them; here no task of another split than ``train`` is ever
looked at. Its first library is made by a teacher before training, and its policy imitates a teacher that uses
the skills; here the library begins empty. Its similarity is a text embedding's; here it is words in common.
"""
