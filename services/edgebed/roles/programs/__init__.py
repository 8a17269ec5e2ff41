"""The controller of a trial whose nodes run programs of the user's."""
