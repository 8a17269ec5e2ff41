"""Studies that show how far edgebed itself can be trusted: `scripts/validate`."""
