"""What makes a node's conditions real: links, caps, and the proof that they held."""
