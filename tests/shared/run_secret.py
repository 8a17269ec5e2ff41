"""The secret of a run that tests play the nodes of."""

from edgebed.runtimes.live.authentication import Credentials

SECRET = "00112233445566778899aabbccddeeff"
CREDENTIALS = Credentials.of(SECRET)
