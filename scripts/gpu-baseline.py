#!/usr/bin/env python3
"""The models of scripts/gpu-validate in PyTorch: the yardstick for what Shardplan's own runtime takes.

usage: gpu-baseline.py [--deadline SECONDS] [--mode eager|compiled] MODEL:GLOBAL_BATCH:SEQUENCE:MICRO_BATCH ...
       gpu-baseline.py --parameters MODEL ...

Shapes are those of configs/models. An iteration is forward and backward of all micro-batches and a fused AdamW step.
Weights, activations and products are in bf16, gradients are summed and weights are stepped in fp32, as our runtime does
it in bf16. (autocast would keep the residual stream and the norms in fp32.) Prints one line of JSON a model and mode as
soon as it is there, eager before compiled: the median of 5 iterations after the warm-up, by CUDA events. A line with
"error" says what went wrong; what the deadline left no time for has one too. Needs PyTorch 2.1.
"""

import argparse
import gc
import json
import os
import re
import statistics
import sys
import time

WARM_UP, TIMED = 2, 5


def config_folders():
    here = os.path.dirname(os.path.realpath(__file__))
    given = os.environ.get("SHARDPLAN_CONFIG_PATH", "")
    return [d for d in given.split(":") if d] + [
        os.path.join(here, "..", "share", "shardplan", "configs"),
        os.path.join(here, "..", "configs"),
    ]


def shape_of(model):
    """The keys of configs/models/MODEL.yaml, a flat map; numbers as numbers."""
    for folder in config_folders():
        file = os.path.join(folder, "models", model + ".yaml")
        if os.path.exists(file):
            break
    else:
        sys.exit("gpu-baseline: no model " + model + " in " + ", ".join(config_folders()))
    shape = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            key, _, value = (part.strip() for part in line.partition(":"))
            if re.fullmatch(r"[0-9.]+(e[0-9]+)?", value):
                shape[key] = float(value) if "." in value or "e" in value else int(value)
            elif value in ("true", "false"):
                shape[key] = value == "true"
            else:
                shape[key] = value
    if shape.get("kind") not in ("gpt", "llama") or not shape.get("tie_embeddings"):
        sys.exit("gpu-baseline: " + model + " is no GPT or Llama with tied embeddings")
    return shape


def parameters(s):
    """How many numbers are learnt, from the shapes alone."""
    h, f, head = s["hidden"], s["ffn_hidden"], s["hidden"] // s["heads"]
    qkv = (s["heads"] + 2 * s["kv_heads"]) * head
    bias = int(s["linear_bias"])
    norm = 2 * h if s["kind"] == "gpt" else h
    up = 2 * f if s["gated_mlp"] else f
    attention = h * qkv + h * h + bias * (qkv + h)
    mlp = h * up + f * h + bias * (up + h)
    return s["layers"] * (attention + mlp + 2 * norm) + norm + h * (s["vocab"] + s.get("max_positions", 0))


def build(torch, s):
    """The model as a torch module that maps ids and labels to the mean loss."""
    nn, fn = torch.nn, torch.nn.functional
    h, heads, kv_heads = s["hidden"], s["heads"], s["kv_heads"]
    head, drop, bias = h // heads, s["dropout"], s["linear_bias"]
    gpt = s["kind"] == "gpt"

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(h))

        def forward(self, x):
            if hasattr(fn, "rms_norm"):  # since 2.4
                return fn.rms_norm(x, (h,), self.weight, 1e-5)
            wide = x.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight

    def norm():
        return nn.LayerNorm(h) if gpt else RmsNorm()

    def turned(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(h, (heads + 2 * kv_heads) * head, bias=bias)
            self.out = nn.Linear(h, h, bias=bias)

        def forward(self, x, cos, sin):
            batch, length, _ = x.shape
            sizes = (heads * head, kv_heads * head, kv_heads * head)
            q, k, v = (t.view(batch, length, -1, head).transpose(1, 2) for t in self.qkv(x).split(sizes, dim=-1))
            if not gpt:
                q, k = turned(q, cos, sin), turned(k, cos, sin)
            if kv_heads != heads:
                k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
            # No dropout of probabilities: our flash attention has none either.
            y = fn.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, length, h))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(h, s["ffn_hidden"] * (2 if s["gated_mlp"] else 1), bias=bias)
            self.down = nn.Linear(s["ffn_hidden"], h, bias=bias)

        def forward(self, x):
            x = self.up(x)
            if s["gated_mlp"]:
                gate, x = x.chunk(2, dim=-1)
                return self.down(fn.silu(gate) * x)
            return self.down(fn.gelu(x, approximate="tanh"))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.attention = norm(), Attention()
            self.norm_2, self.mlp = norm(), Mlp()

        def forward(self, x, cos, sin):
            x = x + fn.dropout(self.attention(self.norm_1(x), cos, sin), drop)
            return x + fn.dropout(self.mlp(self.norm_2(x)), drop)

    class Model(nn.Module):
        def __init__(self, length):
            super().__init__()
            self.tokens = nn.Embedding(s["vocab"], h)
            self.positions = nn.Embedding(s["max_positions"], h) if gpt else None
            self.layers = nn.ModuleList(Layer() for _ in range(s["layers"]))
            self.norm = norm()
            angles = torch.arange(length)[:, None] * 10000.0 ** -(torch.arange(0, head, 2) / head)[None, :]
            self.register_buffer("cos", torch.cat((angles, angles), dim=-1).cos(), persistent=False)
            self.register_buffer("sin", torch.cat((angles, angles), dim=-1).sin(), persistent=False)
            for weight in self.parameters():
                if weight.dim() > 1:
                    nn.init.normal_(weight, std=0.02)

        def forward(self, ids, labels):
            x = self.tokens(ids)
            if gpt:
                x = x + self.positions.weight[: ids.shape[1]]
            x = fn.dropout(x, drop)
            for layer in self.layers:
                x = layer(x, self.cos, self.sin)
            logits = fn.linear(self.norm(x), self.tokens.weight)
            return fn.cross_entropy(logits.view(-1, s["vocab"]).float(), labels.view(-1))

    return Model


class Training:
    """One model on the GPU with its fp32 weights, gradients and optimizer."""

    def __init__(self, torch, shape, batch, sequence, micro_batch, compiled):
        self.torch, self.micro_batches = torch, batch // micro_batch
        torch.manual_seed(1)
        with torch.device("cuda"):
            self.model = build(torch, shape)(sequence)
            ids = torch.randint(shape["vocab"], (self.micro_batches, micro_batch, sequence + 1))
        self.ids, self.labels = ids[:, :, :-1].contiguous(), ids[:, :, 1:].contiguous()
        counted = sum(p.numel() for p in self.model.parameters())
        if counted != parameters(shape):
            raise RuntimeError(f"the model has {counted} parameters, not {parameters(shape)}")
        self.masters = [p.detach().float().clone() for p in self.model.parameters()]
        for master in self.masters:
            master.grad = torch.zeros_like(master)
        self.model.to(torch.bfloat16)
        self.weights = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4, weight_decay=0.1, fused=True)
        self.loss = torch.compile(self.model) if compiled else self.model

    def iteration(self):
        torch = self.torch
        for i in range(self.micro_batches):
            (self.loss(self.ids[i], self.labels[i]) / self.micro_batches).backward()
            torch._foreach_add_([m.grad for m in self.masters], [w.grad for w in self.weights])
            for weight in self.weights:
                weight.grad = None
        self.optimizer.step()
        with torch.no_grad():
            for weight, master in zip(self.weights, self.masters):
                weight.copy_(master)
                master.grad.zero_()

    def seconds(self):
        """Of one iteration, as the GPU's clock counts them."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.iteration()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1000


def measured(torch, shape, batch, sequence, micro_batch, compiled):
    torch.cuda.reset_peak_memory_stats()
    training = Training(torch, shape, batch, sequence, micro_batch, compiled)
    began = time.monotonic()
    for _ in range(WARM_UP):
        training.seconds()
    warm_up = time.monotonic() - began
    times = [training.seconds() for _ in range(TIMED)]
    median = statistics.median(times)
    return {
        "iteration_s": median,
        "iterations_s": times,
        "tokens_per_s": batch * sequence / median,
        "warm_up_s": round(warm_up, 3),
        "peak_bytes": torch.cuda.max_memory_allocated(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", action="store_true", help="print how many each model has; needs no PyTorch")
    parser.add_argument("--deadline", type=float, default=600, help="seconds after which nothing more is begun")
    parser.add_argument("--mode", choices=("eager", "compiled"), action="append", help="default: both")
    parser.add_argument("models", nargs="+", metavar="MODEL[:GLOBAL_BATCH:SEQUENCE:MICRO_BATCH]")
    given = parser.parse_args()
    if given.parameters:
        for model in given.models:
            print(model.split(":")[0], parameters(shape_of(model.split(":")[0])))
        return 0
    began = time.monotonic()
    cases = []
    for word in given.models:
        model, *sizes = word.split(":")
        if len(sizes) != 3:
            parser.error(word + ": write MODEL:GLOBAL_BATCH:SEQUENCE:MICRO_BATCH")
        cases.append((model, shape_of(model), *map(int, sizes)))
    import torch

    failed = False
    for mode in given.mode or ("eager", "compiled"):
        for model, shape, *sizes in cases:
            line = {"model": model, "mode": mode, "precision": "bf16", "torch": torch.__version__}
            line.update(zip(("global_batch", "sequence", "micro_batch"), sizes))
            if time.monotonic() - began > given.deadline:
                line["error"] = "left out: the deadline is over"
            else:
                try:
                    line.update(measured(torch, shape, *sizes, mode == "compiled"))
                except Exception as fault:  # whatever it is, the other models go on
                    line["error"] = f"{type(fault).__name__}: {fault}"[:300]
                    failed = True
            print(json.dumps(line), flush=True)
            if hasattr(torch, "_dynamo"):
                torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
