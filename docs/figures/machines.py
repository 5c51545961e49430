"""Two ways to use several machines: many experiments that share results, one training that shares a disk."""

from __future__ import annotations

from docs.figures.drawing import BLUE, GREEN, GREY, MUTED, ORANGE, VIOLET, Drawing

ABOUT = (
    "Left: a head gives out commands by Ray to machines that each have a checkout, a cache and a disk; "
    "results and the run cache go to a DVC remote, and dvc.lock comes back. Right: a training stage "
    "starts ranks by Ray, or a launcher such as SLURM does; the ranks share gradients, and one disk "
    "with the checkpoints. Metrics of all go to MLflow."
)


def draw() -> str:
    """The picture."""
    page = Drawing(760, 400, ABOUT)
    page.box(280, 16, 200, 46, BLUE, ("head", "flows.ablation, skillpress.pipeline.reproduce"), size=13)
    page.frame(16, 110, 350, 210, dashed=True)
    page.text(28, 312, "many experiments: own checkout, cache and disk", anchor="start", size=12, color=MUTED)
    page.box(32, 146, 150, 50, GREEN, ("machine A", "skillpress run --remote"), size=13)
    page.box(200, 146, 150, 50, GREEN, ("machine B", "skillpress run --remote"), size=13)
    page.box(116, 246, 150, 46, ORANGE, ("DVC remote", "results, run cache"), size=13)
    page.arrow((300, 62), (300, 86), (107, 86), (107, 146))
    page.arrow((320, 62), (320, 98), (275, 98), (275, 146))
    page.text(20, 80, "commands by Ray; dvc.lock comes back", size=11, color=MUTED, anchor="start")
    page.arrow((107, 196), (165, 246))
    page.arrow((275, 196), (217, 246))
    page.frame(394, 110, 350, 210, dashed=True)
    page.text(732, 130, "one large training: one disk for all", anchor="end", size=12, color=MUTED)
    page.box(410, 146, 140, 50, VIOLET, ("train_policy", "lock, records, results"), size=13)
    page.box(590, 146, 140, 50, GREY, ("torchrun, srun", "SLURM, Kubernetes"), size=13)
    page.box(410, 226, 140, 32, GREEN, ("rank 0",), size=13)
    page.box(590, 226, 140, 32, GREEN, ("ranks 1 ... n − 1",), size=13)
    page.box(500, 276, 140, 34, ORANGE, ("disk: checkpoints",), size=13)
    page.arrow((440, 62), (440, 146))
    page.text(448, 90, "--cluster", size=11, color=MUTED, anchor="start")
    page.arrow((480, 196), (480, 226))
    page.arrow((550, 186), (606, 226))
    page.arrow((660, 196), (660, 226), dashed=True)
    page.arrow((550, 242), (590, 242))
    page.arrow((590, 248), (550, 248))
    page.arrow((500, 258), (535, 276))
    page.arrow((640, 258), (605, 276))
    page.box(305, 350, 150, 40, GREY, ("MLflow server", "metrics of all"), size=13)
    page.arrow((190, 320), (190, 370), (305, 370))
    page.arrow((570, 320), (570, 370), (455, 370))
    return page.svg()
