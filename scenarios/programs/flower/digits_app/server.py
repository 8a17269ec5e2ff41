"""What the SuperLink runs: federated averaging, and the accuracy after each round."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits_app.task import TEST, accuracy, data, initial

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Average over those SuperNodes that there are."""
    images, labels = (each[-TEST:] for each in data())

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        found = accuracy(arrays.to_numpy_ndarrays(), images, labels)
        print(f"round {number} accuracy={found:.4f}", flush=True)
        return MetricRecord({"accuracy": found})

    strategy = FedAvg(fraction_evaluate=0.0)
    rounds = int(context.run_config["num-server-rounds"])
    strategy.start(grid=grid, initial_arrays=ArrayRecord(initial()), num_rounds=rounds, evaluate_fn=evaluate)
