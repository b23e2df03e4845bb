"""Callbacks: objects that are called during a training."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.watchers": {"callbacks": "mtcd.training.callbacks.calling:Calling"},
        "mtcd.config": {"callbacks": "mtcd.training.callbacks.config:make_callbacks"},
    },
    public_names={
        "Callback": "mtcd.training.callbacks.callback",
        "CsvWriter": "mtcd.training.callbacks.csv",
        "EarlyStopping": "mtcd.training.callbacks.early_stopping",
        "KeepBest": "mtcd.training.callbacks.keep_best",
        "MLflowWriter": "mtcd.training.callbacks.mlflow",
        "Moment": "mtcd.training.callbacks.callback",
        "TensorBoardWriter": "mtcd.training.callbacks.tensorboard",
    },
)
