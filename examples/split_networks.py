"""Four parties see a quarter of every picture, and train one classifier out of four networks: MTCD
against SVFL.

The pictures are scikit-learn's 8 x 8 digits, the networks plain nn.Modules. Two clusters of two
parties have a token each; a message between client and server costs 1, a hop between neighbours
1/100.

    pip install '.[torch]' scikit-learn    # in a clone of the mtcd repository
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import mtcd

digits = load_digits()
pictures = torch.as_tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
top, bottom = pictures.chunk(2, dim=2)
quarters = {
    "top_left": top[..., :4],
    "top_right": top[..., 4:],
    "bottom_left": bottom[..., :4],
    "bottom_right": bottom[..., 4:],
}
data = mtcd.VerticalDataset(quarters, digits.target).holdout(0.25)


def quarter_network() -> nn.Module:
    """From (samples, 1, 4, 4) to (samples, 16): what a party tells of its quarter."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 16),
    )


torch.manual_seed(0)
model = mtcd.SplitModel(
    {party: quarter_network() for party in quarters}, fusion=nn.Linear(4 * 16, 10)
)
clusters = [["top_left", "top_right"], ["bottom_left", "bottom_right"]]
methods = {
    "SVFL, everybody asks the server": mtcd.SVFL(local_updates=5, stepsize=0.03, batch=50),
    "MTCD, a token per cluster": mtcd.MTCD(
        clusters=clusters, hops=4, local_updates=5, stepsize=0.03, batch=50
    ),
}

print(f"{'':32} {'epochs':>7} {'test accuracy':>14} {'cost':>7} {'MB sent':>8}")
for name, method in methods.items():
    run = mtcd.train(data, model, "complete", method, mtcd.Stop(epochs=4))
    sent = sum(run.ledger.bytes("sent").values()) / 1e6
    print(
        f"{name:32} {run.final.epoch:7.0f} {run.final.test_accuracy:14.1%} {run.final.cost:7.0f} "
        f"{sent:8.1f}"
    )
