"""What each SuperNode runs: an epoch on its own part of the images."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits_app.task import TEST, data, train

app = ClientApp()


@app.train()
def train_here(message: Message, context: Context) -> Message:
    """Train from the weights that came, and answer with what became of them."""
    part, parts = (int(context.node_config[key]) for key in ("partition-id", "num-partitions"))
    images, labels = (each[:-TEST][part::parts] for each in data())
    weights = [each.copy() for each in message.content["arrays"].to_numpy_ndarrays()]
    loss = train(weights, images, labels, float(context.run_config["learning-rate"]))
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord(weights), "metrics": metrics}), reply_to=message)
