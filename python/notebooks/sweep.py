# %% [markdown]
# # A sweep, as a table and a plot
# How time and memory of a plan change with its sizes. `# %%` begins a cell: VS Code, Spyder and Jupytext open this
# file as a notebook, and Python runs it as a script.

# %%
import shardplan

scenario = shardplan.Scenario(
    model="llama-3-8b",
    cluster=shardplan.Cluster(base="dgx-h100", devices=32),
    training=shardplan.Training(global_batch=256, sequence=8192),
    plan=shardplan.Plan(zero=1, sequence_parallel=False))
swept = shardplan.sweep(scenario, {"tp": [1, 2, 4, 8], "pp": [1, 2, 4]}, progress=True)

# %% The points, best first
rows = sorted((row for row in swept.rows() if row["fits"]), key=lambda row: row["iteration_s"])
assert rows, "no plan fits"
for row in rows[:5]:
    print(f"tp {row['tp']} pp {row['pp']} dp {row['dp']}: {row['iteration_s']:.2f} s, {row['peak_gib']:.1f} GiB")

# %% With pandas, where it is there
try:
    table = swept.to_pandas()
    print(table.pivot(index="tp", columns="pp", values="iteration_s"))
except ImportError:
    print("pip install pandas shows it as a table")

# %% With matplotlib, where it is there
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    for pp in sorted({row["pp"] for row in rows}):
        points = sorted((row["tp"], row["iteration_s"]) for row in rows if row["pp"] == pp)
        plt.plot(*zip(*points), marker="o", label=f"pp {pp}")
    plt.xlabel("tensor parallel size")
    plt.ylabel("seconds an iteration")
    plt.legend()
    plt.savefig("sweep.png")
except ImportError:
    swept.save("sweep.svg")  # the program's own picture

# %% In a notebook the last value is the report's page
swept
