"""`python -m medamad` is the command `medamad`."""

import sys

from medamad.cli import main

sys.exit(main())
