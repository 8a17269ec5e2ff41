"""Published tables and figures as code, a file a paper: what was measured there, and how it is measured here."""
