#!/usr/bin/env bash
# hydra-core 1.3.8, hydra-optuna-sweeper 1.3.0, Optuna 5.0.0: range(1,4) ends at 3 or at 4, depending on the sweeper.
#
#   app.py -m 'x=range(1,4)'                                     tries 1 2 3
#   app.py -m hydra/sweeper=optuna 'x=range(1,4)'                      1 2 3 4
#   app.py -m hydra/sweeper=optuna 'x=shuffle(range(1,4))'             1 2 3
#   app.py -m hydra/sweeper=optuna 'x=range(0.5,1.5,0.5)'              0.5 1.0 1.5
#
# A good guess is 1 2 3: range is part of Hydra's grammar, where it ends like Python's, the sweeper is often chosen in
# another file, and `shuffle` only asks for another order. But the plugin makes IntDistribution(1, 4) of a range
# (create_optuna_distribution_from_override in its _impl.py), and Optuna's distributions include their upper end. The
# plugin's page says that ranges become an IntDistribution, shuffled ones a CategoricalDistribution, and nothing of
# the end.
# Whoever moves a grid to Optuna's sweeper meets it: a value that was excluded, such as one more layer than fits into
# memory, is tried and may win. Write x=1,2,3.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" install --quiet --disable-pip-version-check)
"${pip[@]}" hydra-core==1.3.8 optuna==5.0.0
"${pip[@]}" --no-deps hydra-optuna-sweeper==1.3.0 # it asks for an Optuna below 3
cat >"$folder/app.py" <<'PYTHON'
import hydra


@hydra.main(version_base=None, config_path=".", config_name="app")
def main(config):
    print("tried", config.x)
    return float(config.x)


main()
PYTHON
printf 'x: 0\n' >"$folder/app.yaml"
cd "$folder"
tried() {
    venv/bin/python -W ignore app.py -m "$@" 2>/dev/null | sed -n 's/^tried //p' | sort -un | xargs
}
optuna=(hydra/sweeper=optuna hydra.sweeper.n_trials=40 hydra.sweeper.sampler.seed=1)
found="$(tried 'x=range(1,4)') | $(tried "${optuna[@]}" 'x=range(1,4)') | $(tried "${optuna[@]}" 'x=shuffle(range(1,4))')"
found+=" | $(tried "${optuna[@]}" 'x=range(0.5,1.5,0.5)')"
echo "basic | optuna | optuna, shuffled | optuna, floats: $found"
[ "$found" = "1 2 3 | 1 2 3 4 | 1 2 3 | 0.5 1.0 1.5" ]
