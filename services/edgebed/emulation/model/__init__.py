"""What a link does where no kernel holds it: in virtual time, and in a node's own shell."""
