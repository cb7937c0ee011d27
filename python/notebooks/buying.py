# %% [markdown]
# # What to buy
# A run of 300 billion tokens of Llama 3 8B: which devices, and how many, for how many days and dollars.

# %%
import shardplan

TOKENS = "300B"
PRICES = {"dgx-a100": 1.8, "dgx-h100": 2.8, "dgx-b200": 4.5}  # dollars a device hour: put in what you pay

offers = []
for cluster, dollars in PRICES.items():
    for devices in (32, 64, 128):
        found = shardplan.plan(
            "llama-3-8b", gpus=devices, cluster=cluster, batch=512, sequence=8192, tokens=TOKENS,
            set={"cluster.price.usd_per_device_hour": dollars}, strategy="grid")
        if not found:
            continue
        seconds = found.best.time.iteration_s
        hours = seconds * 300e9 / (512 * 8192) / 3600
        offers.append((cluster, devices, hours / 24, hours * devices * dollars, found))

# %% The cheapest within 30 days
assert offers, "nothing fits"
for cluster, devices, days, cost, _ in sorted(offers, key=lambda offer: offer[3]):
    print(f"{devices:4} of {cluster:9} {days:6.1f} days  {cost / 1000:8.0f} thousand dollars")
in_time = [offer for offer in offers if offer[2] <= 30]
best = min(in_time or offers, key=lambda offer: offer[3])
print(f"buy {best[1]} of {best[0]}: {best[4].best.plan_text}")

# %% Its report, to send round
best[4].save("offer.html")
