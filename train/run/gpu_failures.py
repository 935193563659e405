"""A GPU that ought to be there and is not, or that fails in the middle of a run.

Both end a start with exit code 75: on another node the same command resumes from the last checkpoint. How many such
starts came in a row, without a checkpoint between them, lies in a file of the run: after MOST the job is not requeued.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from cards.base.files import write_atomic
from command.errors import UserError
from train.run.checkpoint import checkpoint
from train.run.device import choose_device, problem_with
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
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that leave no GPU


class GpuError(UserError):
    """A GPU is missing or has failed; the run resumes from its checkpoint on another node."""

    exit_code = EXIT_REQUEUE


def device_of_run(setting: str, run: Path) -> torch.device:
    """As `choose_device`, but raises GpuError where a GPU is missing that ought to be there."""
    if (missing := missing_gpu(setting, run)) is None:
        return choose_device(setting)
    hint = f"device=cpu trains on the CPU; sbatch --exclude={_host()} keeps a job off this node"
    raise _error(run, missing, hint, hopeless=torch.version.cuda is None)


def missing_gpu(setting: str, run: Path) -> str | None:
    """Why `auto` is no CPU: the job was given a GPU, or the run began on one, and there is none. Else None."""
    if setting != "auto" or (why := _why_on_gpu(run)) is None:
        return None
    problem = problem_with(torch.device("cuda"))
    return problem and f"{why}, but {_host()} has none that can be used ({problem})"


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
    newest = next((path.name for path in checkpoint.listed(run / "checkpoints")), None)
    standing = {"checkpoint": newest, "job": os.environ.get("SLURM_JOB_ID")}
    try:
        before = json.loads((run / FILE).read_text())
        times = int(before.pop("times")) + 1 if before.items() >= standing.items() else 1
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        times = 1
    try:
        write_atomic(run / FILE, json.dumps(standing | {"times": times}) + "\n")
    except OSError:
        return MOST  # without a count it might fail for ever
    return times


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


def _why_on_gpu(run: Path) -> str | None:
    """Why the run ought to be on a GPU; None where it need not."""
    learners = [str(start.get("learner", "")) for start in read_launches(run)]
    on_gpu = any(each.startswith(LEARNER_ON) and not each.startswith(_ON_CPU) for each in learners)
    if on_gpu and checkpoint.listed(run / "checkpoints"):
        return "this run began on a GPU"
    # To a PyTorch without CUDA the GPUs of all nodes are the same.
    return "this job was given a GPU" if _job_has_gpus() and torch.version.cuda is not None else None


def _job_has_gpus() -> bool:
    """Whether Slurm has given GPUs to the job of this process, and they are not hidden."""
    if "SLURM_JOB_ID" not in os.environ:
        return False
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return visible.strip() not in _HIDDEN
    numbers = any(os.environ.get(name) for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS"))  # such as 0,1
    return numbers or os.environ.get("SLURM_GPUS_ON_NODE", "0") != "0"


def _host() -> str:
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
