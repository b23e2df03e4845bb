"""Three organisations know different things about the same people, and train one model without
pooling them.

A hospital holds the outcome and clinical values, a bank and a gym hold a table each. Rows are
matched on an id; people who are not known to all three are left out, and reported. The token goes
round the three by itself: no server.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import mtcd

rng = np.random.default_rng(0)
people = rng.permutation(400)
age, pressure, income, visits = rng.standard_normal((4, 400))
ill = (age + 0.8 * pressure - 0.5 * visits + 0.3 * rng.standard_normal(400) > 0).astype(int)

with TemporaryDirectory() as folder:
    hospital, bank, gym = (
        Path(folder) / name for name in ("hospital.csv", "bank.parquet", "gym.csv")
    )
    pl.DataFrame({"person": people, "ill": ill, "age": age, "pressure": pressure}).write_csv(
        hospital
    )
    pl.DataFrame({"person": people[:390], "income": income[:390]})[::-1].write_parquet(bank)
    pl.DataFrame({"person": people[5:], "visits": visits[5:]}).write_csv(gym)

    data = mtcd.read_tables(
        hospital,
        label="ill",
        id="person",
        clients={
            "hospital": ["age", "pressure"],
            "bank": mtcd.TableShare(bank),
            "gym": mtcd.TableShare(gym),
        },
    )

for note in data.notes:
    print("note:", note.replace(folder + "/", ""))

run = mtcd.train(
    data,
    model=mtcd.Glm("logistic", l2=1.0, intercept=True),
    network="path",
    method=mtcd.STCD(local_updates=10),
    stop=mtcd.Stop(gap=1e-6, iterations=20_000),
)
print(run.message)
for client, theta in run.parameters.items():
    print(f"{client:9} keeps {np.round(theta, 2)}")
print("share of outcomes predicted right:", np.mean(run.predict(data) == data.labels))
