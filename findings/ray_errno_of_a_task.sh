#!/usr/bin/env bash
# Ray 2.60.0: the OSError of a task is caught as an OSError, but its errno, strerror and filename are None.
#
#   @ray.remote
#   def save(): raise OSError(errno.ENOSPC, "No space left on device", "/data/weights")
#
#   try: ray.get(save.remote())
#   except OSError as error: ...      it is caught here
#
#   error.errno, error.strerror, error.filename   None, None, None
#   error.cause.errno, error.cause.filename       28, /data/weights
#   error.args                                    (OSError(28, 'No space left on device'),)
#
# A good guess is 28. Ray's page on fault tolerance says that "the raised exception is an instance of both
# RayTaskError and the user's exception type so the user can try-catch either of them", and its class passes unknown
# attributes on to the cause: an errno that is set on an exception class of one's own does arrive. But errno, strerror
# and filename of OSError are slots that exist and are empty in the new object, and __getattr__ is only asked for what
# does not exist (_make_normal_dual_exception_instance in ray/exceptions.py). `if error.errno == errno.ENOSPC: wait()`
# therefore never waits, and a KeyError's args[0] is not the key.
# Whoever handles full disks, locked files or refused connections in a driver meets it: look at error.cause.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ray==2.60.0
RAY_ENABLE_UV_RUN_RUNTIME_ENV=0 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import errno

import ray

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")


class OwnError(Exception):
    pass


@ray.remote(max_retries=0)
def fail(how):
    if how == "disk":
        raise OSError(errno.ENOSPC, "No space left on device", "/data/weights")
    if how == "key":
        return {}["ace"]
    error = OwnError("of my own")
    error.errno = errno.ENOSPC
    raise error


found = {}
for how in ("disk", "key", "own"):
    try:
        ray.get(fail.remote(how))
    except (OSError, KeyError, OwnError) as error:
        found[how] = error
disk, key, own = found["disk"], found["key"], found["own"]
print("OSError:", disk.errno, disk.strerror, disk.filename, "its cause:", disk.cause.errno, disk.cause.filename)
print("KeyError:", key.args, "its cause:", key.cause.args, "own error:", own.errno)
ray.shutdown()
seen = disk.errno, disk.filename, disk.cause.errno, key.args == ("ace",), key.cause.args, own.errno
raise SystemExit(seen != (None, None, 28, False, ("ace",), 28))
PYTHON
