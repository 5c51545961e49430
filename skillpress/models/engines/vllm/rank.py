"""vLLM inside a process that is already one rank of a training.

vLLM expects to own its process: it connects the process with others, chooses a GPU and, at its end, destroys
torch's default process group. In a rank, DeepSpeed has connected the processes before, each rank has chosen
its GPU (``distributed.settle``), and the group is needed until the training ends. Of three ways, this module
takes the first:

    one executor per rank    vLLM finds the existing group and makes its own groups beside it, of one rank
                             each, since the model is not spread. Weights are handed over within the process,
                             and nothing can outlive a rank. vLLM needs no port and no rank from the
                             environment.
    ``external_launcher``    vLLM's own executor for such processes works the same way, but reads RANK and
                             LOCAL_RANK, which our own ranks do not set, and their child processes would
                             inherit them
    an engine process        vLLM's default: isolated, but one more process and one more CUDA context per GPU,
                             weights through shared memory or CUDA IPC, and a child that outlives a killed
                             rank unless it watches its parent

So all ranks start their engines at the same time (making a group needs all of them), and every engine samples
by itself afterwards.
"""

from __future__ import annotations

import torch
import torch.distributed
from vllm.distributed import parallel_state
from vllm.v1.executor.uniproc_executor import UniProcExecutor

_destroy_all = parallel_state.destroy_distributed_environment


class RankExecutor(UniProcExecutor):
    """vLLM's executor for one process, on this process's GPU, as one of the connected ranks."""

    def _init_executor(self) -> None:
        connected = torch.distributed.is_initialized()
        # vLLM calls this at the engine's end, also if the engine is collected instead of closed.
        parallel_state.destroy_distributed_environment = _destroy_own if connected else _destroy_all
        super()._init_executor()

    def _distributed_args(self) -> tuple[str, int, int]:
        """(where to meet, used only if the process is not connected yet; its rank; its GPU)."""
        meeting, _, _ = super()._distributed_args()
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        return meeting, rank, torch.cuda.current_device() if torch.cuda.is_available() else 0


def _destroy_own() -> None:
    """End vLLM's own groups and keep the default group, which the learner made and still needs."""
    if parallel_state._WORLD is not None:
        parallel_state._WORLD.destroy()
    parallel_state._WORLD = parallel_state._NODE_COUNT = None
