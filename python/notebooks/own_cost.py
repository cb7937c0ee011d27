# %% [markdown]
# # A search by one's own cost
# Shardplan prices plans; what is best may be something else: here the dollars of an iteration, with a fee for every node
# that a failure of one would stop. Plans go in as arrays, a column a key, and figures come out as arrays.

# %%
import itertools
import time

import shardplan

scenario = shardplan.Scenario(
    model="gpt3-13b",
    cluster=shardplan.Cluster(base="dgx-a100", devices=128),
    training=shardplan.Training(global_batch=1024, sequence=2048),
    plan={})
keys = ("tp", "pp", "micro_batch", "zero", "sequence_parallel")
plans = list(itertools.product((1, 2, 4, 8), (1, 2, 4, 5, 8, 10), (1, 2, 4, 8), (0, 1, 2, 3), (0, 1)))
columns = dict(zip(keys, zip(*plans)))
many = shardplan.evaluate_many(scenario, **columns)

# %% One's own cost of each plan that fits
FEE = 0.02  # dollars an iteration for each stage of the pipeline


def cost(i):
    return many["iteration_s"][i] / 3600 * 128 * 2.0 + FEE * columns["pp"][i]


fitting = [i for i in range(len(plans)) if not many["errors"][i] and many["fits"][i]]
assert fitting, "no plan fits"
best = min(fitting, key=cost)
print(f"{len(fitting)} of {len(plans)} plans fit; the best by this cost:", dict(zip(keys, plans[best])),
      f"{many['iteration_s'][best]:.2f} s, {cost(best):.3f} dollars")

# %% How fast that is: 100,000 plans as a random search would ask for them, by one thread
hundred_thousand = (plans * (100_000 // len(plans) + 1))[:100_000]
columns = {key: list(column) for key, column in zip(keys, zip(*hundred_thousand))}
begun = time.perf_counter()
shardplan.evaluate_many(scenario, **columns)
print(f"{100_000 / (time.perf_counter() - begun):,.0f} plans a second")
