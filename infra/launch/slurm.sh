#!/bin/bash
# {{ title }}: training on {{ nodes }} nodes with {{ ranks }} processes each, under SLURM.
# Filled in by `python -m skillpress.pipeline.reproduce --dry-run --launch slurm`. This template was never run: no cluster
# was at hand. It needs the repository on a disk that all nodes share, set up there (`make setup`).
#SBATCH --job-name={{ name }}
#SBATCH --nodes={{ nodes }}
{% if servers %}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
{% else %}
#SBATCH --ntasks-per-node={{ ranks }}
{% endif %}
{% if gpus %}
#SBATCH --gpus-per-node={{ per_node }}
{% endif %}
#SBATCH --time=2-00:00:00
#SBATCH --output=%x-%j.log
{% if servers %}
{% include "one_node.sh" %}
{% else %}
set -euo pipefail
cd {{ repository }}
export PATH="$PWD/.venv/bin:$PATH"

# What training needs, on the first node.
python -m skillpress.pipeline.reproduce {{ options }}--stages filter_tasks fit_dictionary

# Training: one task is one rank, and says so in the variables that torchrun would set. When a rank is lost
# srun ends the others, and the next attempt goes on from the last checkpoint. Exit code 2 is a mistake that
# another attempt would repeat.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR MASTER_PORT
for attempt in 1 2 3; do
  code=0
  # shellcheck disable=SC2016  # each task looks at its own variables
  srun --kill-on-bad-exit=1 --chdir={{ folder }} bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE={{ ranks }}
    exec python -m tasks train_policy' || code=$?
  if [ "$code" -eq 0 ] || [ "$code" -eq 2 ]; then break; fi
  echo "attempt $attempt ended with exit code $code" >&2
done
if [ "$code" -ne 0 ]; then exit "$code"; fi

# What was trained becomes DVC's, and the stages after it run on the first node.
(cd {{ folder }} && dvc commit --force train_policy)
python -m skillpress.pipeline.reproduce {{ options }}
{% endif %}
