"""Two ways to use several machines: many experiments that share results, one training that shares a disk."""

from __future__ import annotations

from docs.figures.drawing import GREEN, GREY, MUTED, ORANGE, VIOLET, Drawing

ABOUT = (
    "Left: machines that each have a checkout, a cache and a disk; results and the run cache go to a DVC "
    "remote. Right: a launcher such as SLURM starts the ranks of a training; they share gradients, and one "
    "disk with the checkpoints. Metrics of all go to MLflow."
)


def draw() -> str:
    """The picture."""
    page = Drawing(760, 308, ABOUT)
    page.frame(16, 18, 350, 210, dashed=True)
    page.text(28, 220, "many experiments: own checkout, cache and disk", anchor="start", size=12, color=MUTED)
    page.box(32, 54, 150, 50, GREEN, ("machine A", "skillpress run --remote"), size=13)
    page.box(200, 54, 150, 50, GREEN, ("machine B", "skillpress run --remote"), size=13)
    page.box(116, 154, 150, 46, ORANGE, ("DVC remote", "results, run cache"), size=13)
    page.arrow((107, 104), (165, 154))
    page.arrow((275, 104), (217, 154))
    page.frame(394, 18, 350, 210, dashed=True)
    page.text(732, 38, "one large training: one disk for all", anchor="end", size=12, color=MUTED)
    page.box(410, 54, 140, 50, VIOLET, ("train_policy", "lock, records, results"), size=13)
    page.box(590, 54, 140, 50, GREY, ("torchrun, srun", "SLURM, Kubernetes"), size=13)
    page.box(410, 134, 140, 32, GREEN, ("rank 0",), size=13)
    page.box(590, 134, 140, 32, GREEN, ("ranks 1 ... n − 1",), size=13)
    page.box(500, 184, 140, 34, ORANGE, ("disk: checkpoints",), size=13)
    page.arrow((480, 104), (480, 134))
    page.arrow((550, 94), (606, 134))
    page.arrow((660, 104), (660, 134), dashed=True)
    page.arrow((550, 150), (590, 150))
    page.arrow((590, 156), (550, 156))
    page.arrow((500, 166), (535, 184))
    page.arrow((640, 166), (605, 184))
    page.box(305, 258, 150, 40, GREY, ("MLflow server", "metrics of all"), size=13)
    page.arrow((190, 228), (190, 278), (305, 278))
    page.arrow((570, 228), (570, 278), (455, 278))
    return page.svg()
