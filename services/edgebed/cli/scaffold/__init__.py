"""What `edgebed init` writes: an experiment with a task and a compression of one's own, or with a program."""
