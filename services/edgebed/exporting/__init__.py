"""Exports of a run for other tools. Only what the command line needs is here; all else is imported where it is used."""

from typing import Literal

Format = Literal["csv", "tensorboard", "parquet", "mlflow"]
