"""The controller's name among the nodes."""

NAME = "controller"
