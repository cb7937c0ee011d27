"""What is claimed of the installed package, measured: wheel_check.py PROGRAM [PLANS]

A person runs it, in the environment that has the wheel: it takes a minute or two. The same bytes as the
command for every shipped scenario and its plan; 1,000 plans of the GPT-3 scenarios, by as many threads
as there are cores; 100,000 plans by arrays, on one thread."""

import collections
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import shardplan

program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
configs = os.path.join(os.path.dirname(shardplan.__file__), "configs")
where = ("--config-path", configs) if os.path.isdir(configs) else ()


def printed(*words):
    return subprocess.run([program, *words, "--format", "json", *where], capture_output=True).stdout


def answered(command, *words, **flags):
    try:
        return command(*words, **flags).json
    except shardplan.InputError:  # a scenario without a plan of its own may have no default one
        return b""


same = collections.Counter()
scenarios = [row["scenario"] for row in shardplan.list("scenarios").rows()]
for name in scenarios:
    same["plan", answered(shardplan.plan, name) == printed("plan", name, "--reproducible")] += 1
    same["evaluate", answered(shardplan.evaluate, name) == printed("evaluate", name)] += 1
print(f"{len(scenarios)} scenarios, the same bytes as the command:", dict(same))
assert not any(number for (_, equal), number in same.items() if not equal)

gpt3 = [name for name in scenarios if name.startswith("gpt3")]
begun, used = time.perf_counter(), time.process_time()
with ThreadPoolExecutor(os.cpu_count()) as pool:
    found = list(pool.map(lambda i: bool(shardplan.plan(gpt3[i % len(gpt3)], threads=1)), range(count)))
assert all(found)
print(f"{count} plans of {', '.join(gpt3)}: {time.perf_counter() - begun:.1f} s, "
      f"{time.process_time() - used:.1f} s of CPU on {os.cpu_count()} cores")

random.seed(1)
many = 100_000
scenario = shardplan.Scenario(
    model="gpt3-13b", cluster=shardplan.Cluster(base="dgx-a100", devices=128),
    training=shardplan.Training(global_batch=1024, sequence=2048))
choices = {"tp": (1, 2, 4, 8), "pp": (1, 2, 4, 5, 8, 10), "micro_batch": (1, 2, 4, 8), "zero": (0, 1, 2, 3),
           "sequence_parallel": (0, 1), "dp_replicate": (1, 2)}
columns = {key: [random.choice(values) for _ in range(many)] for key, values in choices.items()}
begun = time.process_time()
answer = shardplan.evaluate_many(scenario, threads=1, **columns)
seconds = time.process_time() - begun
different = len(set(zip(*columns.values())))
print(f"{many:,} plans by arrays: {many / seconds:,.0f} a second of one core ({different} different ones, "
      f"{sum(not error for error in answer['errors']):,} valid)")
