"""The environment of commands that shall not see what Linux alone has."""

import os
from pathlib import Path

HIDDEN = {
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).with_name("hide")), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
}
