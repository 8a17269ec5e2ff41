"""What `edgebed init` writes: an experiment with a task and a compression of one's own, a file each."""
