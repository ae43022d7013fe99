"""`python -m poprt`."""

import sys

from poprt.cli import main

sys.exit(main())
