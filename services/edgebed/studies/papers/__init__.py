"""Published tables and figures as code, a file a paper: the published values, and how they are measured here."""
