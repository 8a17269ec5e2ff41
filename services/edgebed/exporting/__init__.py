"""A run for other tools. Here is only what the command line names; everything else is imported where it is used."""

from typing import Literal

Format = Literal["csv", "tensorboard", "parquet", "mlflow"]
