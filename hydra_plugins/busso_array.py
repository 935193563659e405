"""`hydra/launcher=array`: a sweep as a Slurm job array that slurm/sweep.sh is."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn


class ArrayLauncher(BasicLauncher):
    """Runs the job of a sweep that is the task of this Slurm job array; elsewhere it prints the folders of all."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Ends the command if the array has another size."""
        from command.app import Ended
        from command.settings.checks import SettingsError

        task, count = os.environ.get("SLURM_ARRAY_TASK_ID"), os.environ.get("SLURM_ARRAY_TASK_COUNT")
        if task is None:
            for overrides in job_overrides:
                self._print_folder(list(overrides))
            return []
        if int(count or 0) != len(job_overrides) or int(task) >= len(job_overrides):
            problem = f"the sweep has {len(job_overrides)} combinations, the array has {count} tasks"
            submit = f"submit with --array=0-{len(job_overrides) - 1}"
            raise Ended(error=SettingsError("--array", problem, submit))
        return super().launch([job_overrides[int(task)]], initial_job_idx)

    def _print_folder(self, overrides: list[str]) -> None:
        assert self.hydra_context is not None
        assert self.config is not None
        sweep = self.hydra_context.config_loader.load_sweep_config(self.config, overrides).hydra.sweep
        print(f"{sweep.dir}/{sweep.subdir}")


@dataclass
class ArrayConf:
    """`hydra/launcher=array` has no settings."""

    _target_: str = "hydra_plugins.busso_array.ArrayLauncher"


ConfigStore.instance().store(group="hydra/launcher", name="array", node=ArrayConf, provider="busso")
