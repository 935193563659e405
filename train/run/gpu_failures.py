"""A GPU that should be there and is not, or that fails during a run.

Both end a start with exit code 75: on another node the same command resumes from the last checkpoint. A file of
the run counts such starts in a row, without a checkpoint between them: after MOST the job is not requeued.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from cards.base.files import write_atomic
from command.errors import UserError
from train.run.checkpoint import checkpoint
from train.run.device import Problem, choose_device, problem_with, why_on_gpu
from train.run.launches import read_launches
from train.run.signals import EXIT_REQUEUE

log = logging.getLogger("train")

FILE = "gpu_failures.json"
MOST = 2  # in a row
LEARNER_ON = "learner on "  # how what is said of a learner in starts.json begins; then CPU, or the name of a GPU
_ON_CPU = LEARNER_ON + "CPU"
# Of errors of PyTorch, cuBLAS and cuDNN, and of Numba. What a GPU has no memory for is a matter of settings.
_SIGNS = ("CUDA error", "CUDA driver error", "CUDNN_STATUS_", "CUBLAS_STATUS_", "CUDA_ERROR_")
_WANT_OF_MEMORY = ("out of memory", "OUT_OF_MEMORY", "ALLOC_FAILED")


class GpuError(UserError):
    """A GPU is missing or has failed; the run resumes from its checkpoint on another node."""

    exit_code = EXIT_REQUEUE


def device_of_run(setting: str, run: Path) -> torch.device:
    """As `choose_device`, but raises GpuError where a GPU is missing that this job has, or the run began on."""
    problem = missing_gpu(setting, run)
    if problem is None:
        return choose_device(setting)
    exclude = "" if problem.everywhere else f"; sbatch --exclude={_host()} keeps a job off this node"
    raise _error(run, problem.text, problem.hint + exclude, hopeless=problem.everywhere)


def missing_gpu(setting: str, run: Path) -> Problem | None:
    """Why `auto` is no CPU: the job was given a GPU, or the run began on one, and none can be used. Else None."""
    problem = problem_with() if setting == "auto" else None
    if problem is None:
        return None
    why = _began_on_gpu(run) or ("SLURM_JOB_ID" in os.environ and why_on_gpu(problem))
    return replace(problem, text=f"{why}, but {_host()} has none that can be used: {problem.text}") if why else None


@contextmanager
def told(run: Path) -> Iterator[None]:
    """Raise GpuError where a failure of the GPU is behind an error; the log of the run has the whole of it."""
    try:
        yield
    except Exception as error:
        failure = None if isinstance(error, GpuError) else failure_in(error)
        if failure is None:
            raise
        log.info("the GPU failed", exc_info=error)
        last = next(iter(checkpoint.listed(run / "checkpoints")), None)
        stands = f"the last checkpoint is {last}" if last else "no checkpoint was written before"
        text = str(failure).strip().partition("\n")[0]
        hint = (
            f"the same command resumes; sbatch --exclude={_host()} keeps a job off this node, device=cpu needs no GPU"
        )
        raise _error(run, f"the GPU failed on {_host()} ({text}); {stands}", hint) from error


def failure_in(error: BaseException) -> BaseException | None:
    """The failure of a GPU from which an error comes: the first of all that followed one another; None without one."""
    found: BaseException | None = None
    each: BaseException | None = error
    while each is not None:
        if _is_failure(each):
            found = each
        each = each.__cause__ or each.__context__
    return found


def failures_in_a_row(run: Path) -> int:
    """Count a failure of this start: how many it makes in this job since the newest checkpoint."""
    standing, times = _failures(run)
    try:
        write_atomic(run / FILE, json.dumps(standing | {"times": times + 1}) + "\n")
    except OSError:
        return MOST  # without a count it might fail for ever
    return times + 1


def failed_before(run: Path) -> bool:
    """Whether the GPU failed in the start before this one of the same job, with no checkpoint since."""
    return _failures(run)[1] > 0


def _failures(run: Path) -> tuple[dict[str, str | None], int]:
    """Where this job stands with the run, and how many starts have failed there."""
    newest = next((path.name for path in checkpoint.listed(run / "checkpoints")), None)
    standing = {"checkpoint": newest, "job": os.environ.get("SLURM_JOB_ID")}
    try:
        before = json.loads((run / FILE).read_text())
        times = int(before.pop("times"))
        return standing, times if before.items() >= standing.items() else 0
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return standing, 0


def _is_failure(error: BaseException) -> bool:
    text = str(error)
    if isinstance(error, UserError | torch.OutOfMemoryError) or any(sign in text for sign in _WANT_OF_MEMORY):
        return False
    return any(sign in text for sign in _SIGNS)


def _error(run: Path, problem: str, hint: str, hopeless: bool = False) -> GpuError:
    """With exit code 1 if it is `hopeless`, or the last of too many: a job script does not start the run again."""
    times = 1 if hopeless else failures_in_a_row(run)
    again = f", {times} times in a row" if times > 1 else ""
    error = GpuError("device", problem + again, hint)
    if hopeless or times >= MOST:
        error.exit_code = 1
    return error


def _began_on_gpu(run: Path) -> str | None:
    """Why the run ought to be on a GPU wherever it resumes; None where it need not."""
    learners = [str(start.get("learner", "")) for start in read_launches(run)]
    on_gpu = any(each.startswith(LEARNER_ON) and not each.startswith(_ON_CPU) for each in learners)
    return "this run began on a GPU" if on_gpu and checkpoint.listed(run / "checkpoints") else None


def _host() -> str:
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
