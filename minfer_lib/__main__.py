"""`python -m minfer_lib …` is `minfer …`."""

import sys

from minfer_lib.cli import main

sys.exit(main())
