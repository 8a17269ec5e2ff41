"""What was measured client by client, in a line: charts are drawn elsewhere."""

from edgebed.core.measures.clients import WHOSE
from edgebed.journal.columns.clients import without_examples
from edgebed.running.results import Trial

WHOSE_TEXT = {
    "client": "as they are",
    "chosen_client": "where validation was best",
    "tuned_client": "fine-tuned",
    "unseen_client": "never seen in training",
}


def client_line(trial: Trial) -> str:
    """The headline over clients in a line; empty where nothing was measured client by client."""
    summary, headline = trial.summary.clients, trial.summary.headline
    if summary is None:
        return ""
    texts = []
    for whose, part in WHOSE.items():
        if spread := getattr(summary, part).get(headline.name):
            prefix = "" if whose == "client" else f"{WHOSE_TEXT[whose]}: "
            mean, worst = headline.text(spread.mean), headline.text(spread.worst_decile)
            texts.append(f"{prefix}mean {mean}, worst decile {worst}")
    own = ", each with its worker's own last model" if summary.own_models else ", of the last model"
    missing = f"; {len(names):,} without {summary.part} examples" if (names := without_examples(trial.plan)) else ""
    return f"{headline.title} by client ({summary.clients:,}{missing}){own}: {'; '.join(texts)}." if texts else ""
