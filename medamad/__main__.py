"""`python -m medamad` is the command `medamad`."""

import sys

from medamad.commands import main

sys.exit(main())
