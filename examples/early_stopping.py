"""Stops when a metric on held-out samples no longer improves, keeps the best model, and logs to a
CSV file.

Run it with: python examples/early_stopping.py
"""

import tempfile
from pathlib import Path

import mtcd


class Print(mtcd.Callback):
    """A callback of one's own: prints every tenth sync."""

    def on_sync(self, moment: mtcd.Moment) -> None:
        """Called after every sync; the measurement is computed when it is asked for."""
        row = moment.measurement
        if row.syncs % 10 == 0:
            print(
                f"sync {row.syncs}: objective {row.objective:.4f}, AUC "
                f"{row.metrics['test_auc']:.4f}"
            )


def main() -> None:
    """Train a logistic regression over six clients."""
    data = mtcd.synthetic("logistic", samples=400, features=60, clients=6, seed=1).holdout(0.25)
    log = Path(tempfile.mkdtemp()) / "log.csv"
    callbacks = [
        Print(),
        mtcd.EarlyStopping("test_auc", patience=6),
        mtcd.KeepBest("test_auc"),
        mtcd.CsvWriter(log),
    ]
    model, method = mtcd.Glm("logistic", l2=1e-3), mtcd.MTCD(tokens=2, hops=6)
    run = mtcd.train(data, model, "cycle", method, mtcd.Stop(iterations=5000), callbacks=callbacks)
    print(run.message)
    print(run.notes[-1])
    print(f"The log is in {log}.")


if __name__ == "__main__":
    main()
