"""What `edgebed init` writes: an experiment with a model, a data set and a compression of one's own, a file each."""
