"""`python -m edgebed.emulation.witness`: see witness.py."""

import sys

from edgebed.emulation.witness.witness import main

sys.exit(main())
