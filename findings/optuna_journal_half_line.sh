#!/usr/bin/env bash
# Optuna 5.0.0: an append to a journal that fails once, as on a disk that is full for a moment, loses the study.
#
# After three trials the journal may grow by 40 bytes only, and ask() raises an OSError. Then there is room again:
#
#   the next trial in the same process   ValueError: Cannot tell a COMPLETE trial.
#   every later start                    JSONDecodeError, with all trials out of reach
#
# A good guess is that the journal has the operation or not, and that the study goes on: JournalFileBackend writes under
# a lock, syncs, and its reader leaves out a last line without a line feed, as of an append that was interrupted. But
# the writer does not: the next operation continues the half line, and the line is no JSON from then on. Whoever keeps
# a study on a disk that others fill, or under a quota, meets it. Cutting the half line before the next append helps: a
# lock_obj of JournalFileBackend may do so in acquire(), as in train/tune/study.py.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check optuna==5.0.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import os
import resource
import signal

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

JOURNAL = "journal.log"


def study():
    storage = JournalStorage(JournalFileBackend(JOURNAL))
    return optuna.create_study(storage=storage, study_name="study", load_if_exists=True)


def outcome(do):
    try:
        return f"{len(do())} trials"
    except Exception as error:
        return type(error).__name__


def one_more(study):
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    return study.trials


optuna.logging.set_verbosity(optuna.logging.CRITICAL)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit then fails like one on a full disk
first = study()
for _ in range(3):
    one_more(first)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(JOURNAL) + 40, most))
failed = outcome(lambda: [first.ask()])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
found = (failed, outcome(lambda: one_more(first)), outcome(lambda: study().trials))
print("without room, then with room in the same process, then at the next start:", *found)
raise SystemExit(found != ("OSError", "ValueError", "JSONDecodeError"))
PYTHON
