"""How a model whose layers lie on different devices learns: one file a method, each with its settings and its rule."""
