"""Environment of commands that must not see Linux-only features."""

import os
from pathlib import Path

HIDDEN = {
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).with_name("hide")), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
}
