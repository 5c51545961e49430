"""SkillRL's library S = S_g ∪ S_k: skills in words that prompts show, after ReuseRL's Appendix B (Eq. 9).

    J(θ, S) = E[ (1/n) Σ_i R(τ_i^S) ],   S ← Evolve(S, failures of training tasks)

``library.py`` holds the library with its history, ``retrieval.py`` chooses the skills that a task's prompts
show, ``advice.py`` puts them into words, ``phrases.py`` and ``teacher.py`` make new skills. It differs from
SkillRL (Xia et al. 2026, arXiv:2602.08234) in three ways. SkillRL's library evolves from failures of
*validation* tasks (D_val in Eq. 9), which then also choose its policy; here the library sees tasks of the
split ``train`` only. In SkillRL a teacher makes the first library before training, and the policy imitates a
teacher that uses the skills; here the library begins empty. SkillRL compares texts by their embeddings; here
by the words that they share.
"""
