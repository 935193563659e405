#!/usr/bin/env bash
# TensorBoard 2.21.0, tensorboard-data-server 0.7.2: three readers, three answers about a run that resumed.
#
# A run writes the curve `final` at step 101, resumes at 80 as SummaryWriter(purge_step=81) marks it, and writes `final`
# at 151. Steps that are shown, by whether the first file has such a mark, too (purge_step=0):
#
#                              without     with    while watched, the first file is deleted, no mark
#   default (load_fast=true)   101, 151    101, 151    101, 151
#   --load_fast=false          101, 151    151         101, then and for every other curve until the server is restarted
#   EventAccumulator           151         151         -
#
# A good guess is 151 in all six: purge_step is documented to hide the events of a crashed run from TensorBoard, and
# EventAccumulator, by which tests read event files, does. The data server in Rust ignores SessionLog.START; a point
# there replaces only later points of its own curve. The other server takes the first mark for a start, and only further
# ones for restarts. And a good guess for the deleted file is that its points go, or that the new file is read. Whoever
# resumes a run and looks at a curve with few points meets the first, whoever tidies up a watched folder the second.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the points differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorboard==2.21.0 tensorboard-data-server==0.7.2 'setuptools<81'
"$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


def write(run, second, start, step):
    """Write an event file: where the run resumed, None for no mark, and one point of `final`."""
    path = run / f"events.out.tfevents.{second:010d}.host"
    with path.open("wb") as file:
        records = RecordWriter(file)
        value = Summary.Value(tag="final", simple_value=1)
        events = [Event(file_version="brain.Event:2"), Event(summary=Summary(value=[value]), step=step)]
        if start is not None:
            events.insert(1, Event(session_log=SessionLog(status=SessionLog.START), step=start))
        for event in events:
            event.wall_time = second
            records.write(event.SerializeToString())
    return path


def points(url):
    try:
        with urlopen(f"{url}data/plugin/scalars/scalars?run=r&tag=final") as answer:
            return [step for _, step, _ in json.load(answer)]
    except HTTPError:
        return None


def shown(loader, mark, delete):
    """Return the steps that a reader shows after a second file was written beside the first, or in its place."""
    run = Path(sys.argv[1]) / f"{loader}-{mark}-{delete}" / "r"
    run.mkdir(parents=True)
    first = write(run, 1000, mark, 101)
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", run.parent, "--host", "127.0.0.1", "--port", "0"]
    command += ["--reload_interval", "1", f"--load_fast={loader}"]
    if loader == "none":
        write(run, 2000, 81, 151)
        return [event.step for event in EventAccumulator(str(run)).Reload().Scalars("final")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        url = next(found[1] for line in server.stdout if (found := re.search(r"at (http://[^ ]*)", line)))
        while points(url) is None:
            time.sleep(0.2)
        if delete:
            first.unlink()
        write(run, 2000, None if delete else 81, 151)
        time.sleep(10)  # ten times its interval
        found = points(url)
        server.terminate()
        server.stdout.read()
    return found


CASES = {
    ("true", None, False): [101, 151],
    ("false", None, False): [101, 151],
    ("none", None, False): [151],
    ("true", 0, False): [101, 151],
    ("false", 0, False): [151],
    ("none", 0, False): [151],
    ("true", None, True): [101, 151],
    ("false", None, True): [101],
}
changed = False
for case, seen in CASES.items():
    found = shown(*case)
    print(f"load_fast={case[0]:5} first mark {case[1]}, {'deleted' if case[2] else 'resumed'}: {found}")
    changed |= found != seen
raise SystemExit(changed)
PYTHON
