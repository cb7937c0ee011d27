#!/usr/bin/env python3
"""Operators of a training step in PyTorch, each alone on one GPU: where configs/kernels has its rates from.

usage: gpu-operators.py OUT SECONDS [GROUP...]

Appends one line of JSON an operator and direction to OUT/operators.jsonl as soon as it is there; what was measured before
SECONDS are over stands. Seconds are the median of seven times between events around one call, after two that are not
counted; 256 MB are written over the L2 cache before each, and the host is kept ahead of the device. Forward is the call;
backward is torch.autograd.grad of its result alone. Groups (all, in this order, unless some are named): host, memory,
pointwise, transformers, loss, optimizer, sharding, products, attention, windows, experts, fp8, compiled, scans. What is not
installed (mamba_ssm, fla, liger_kernel) is said and left out. Needs PyTorch 2.9.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch._functorch.config
import torch.nn.functional as F

BF, FP = torch.bfloat16, torch.float32
ROWS = ((8192, 2048), (8192, 4096), (8192, 8192), (32768, 2048))


class Bench:
    def __init__(self, out, seconds):
        self.log = open(os.path.join(out, "operators.jsonl"), "a")
        self.deadline = time.time() + seconds
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def write(self, op, **row):
        self.log.write(json.dumps(dict(op=op, **row)) + "\n")
        self.log.flush()

    def seconds(self, fn, times=7):
        for _ in range(2):
            fn()
        taken = []
        for _ in range(times):
            self.flush.zero_()
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(200000)
            a.record()
            fn()
            b.record()
            torch.cuda.synchronize()
            taken.append(a.elapsed_time(b) / 1e3)
        return statistics.median(taken)

    def one(self, op, fn, **row):
        if time.time() > self.deadline:
            return
        try:
            self.write(op, seconds=self.seconds(fn), **row)
        except Exception as fault:
            self.write(op, error=str(fault)[:160], **row)
            torch.cuda.empty_cache()

    def both(self, op, fn, inputs, **row):
        if time.time() > self.deadline:
            return
        try:
            y = fn(*inputs)
            g = torch.randn_like(y)
            wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
            self.write(op, direction="forward", seconds=self.seconds(lambda: fn(*inputs)), **row)
            self.write(op, direction="backward", seconds=self.seconds(
                lambda: torch.autograd.grad(y, wanted, g, retain_graph=True)), **row)
        except Exception as fault:
            self.write(op, error=str(fault)[:160], **row)
            torch.cuda.empty_cache()


def r(*shape, grad=True, dtype=BF):
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def loop(fn, times):
    for _ in range(20):
        fn()
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(times):
        fn()
    taken = (time.time() - began) / times
    torch.cuda.synchronize()
    return taken


def host(b):
    """Seconds of the host a call, the device having less to do."""
    x = torch.zeros(8, device="cuda")
    b.write("host, add_ of 8 numbers", seconds=loop(lambda: x.add_(1), 3000))
    layer, z = torch.nn.Linear(64, 64, device="cuda", dtype=BF), r(8, 64)
    b.write("host, linear 64 forward", seconds=loop(lambda: layer(z), 1000))
    b.write("host, linear 64, sum, backward", seconds=loop(lambda: layer(z).sum().backward(), 500))
    w = r(64)
    b.write("host, rms_norm forward", seconds=loop(lambda: F.rms_norm(z, (64,), w), 1000))
    b.write("host, rms_norm, sum, backward", seconds=loop(lambda: F.rms_norm(z, (64,), w).sum().backward(), 500))
    q = r(1, 2, 64, 64)
    b.write("host, attention forward", seconds=loop(lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True), 500))
    with torch.autocast("cuda", dtype=BF):
        full = torch.nn.Linear(64, 64, device="cuda")
        b.write("host, linear 64 forward under autocast", seconds=loop(lambda: full(z), 500))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(100):
            x.add_(1)
    b.write("host, a graph of 100 kernels", seconds=loop(graph.replay, 300))
    parts = [torch.zeros(64, device="cuda") for _ in range(64)]
    b.write("host, foreach_mul_ of 64", seconds=loop(lambda: torch._foreach_mul_(parts, 1.0), 500))
    b.write("host, item()", seconds=loop(x.sum().item, 300))


def memory(b):
    n = 1 << 28
    a, c = torch.empty(n, device="cuda"), torch.empty(n, device="cuda")
    b.one("copy fp32", lambda: c.copy_(a), bytes=8 * n)
    b.one("cast fp32 to bf16", lambda: a.to(BF), bytes=6 * n)
    b.one("add_ fp32", lambda: c.add_(a), bytes=12 * n)
    b.one("add_ of bf16 to fp32", lambda g=torch.zeros(n, device="cuda", dtype=BF): c.add_(g), bytes=10 * n)
    b.one("zero fp32", lambda: c.zero_(), bytes=4 * n)
    b.one("norm fp32", lambda: torch.linalg.vector_norm(a), bytes=4 * n)
    for size in (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26):
        b.one("copy bf16", lambda s=torch.empty(size, device="cuda", dtype=BF), t=torch.empty(size, device="cuda", dtype=BF):
              t.copy_(s), bytes=4 * size)


def pointwise(b):
    for tokens, h in ROWS:
        n = dict(tokens=tokens, hidden=h)
        w, bias = r(h), r(h)
        b.both("rms_norm", lambda x, w: F.rms_norm(x, (h,), w, 1e-5), (r(tokens, h), w), **n)
        b.both("layer_norm", lambda x, w: F.layer_norm(x, (h,), w, None, 1e-5), (r(tokens, h), w), **n)
        b.both("layer_norm with bias", lambda x, w, c: F.layer_norm(x, (h,), w, c, 1e-5), (r(tokens, h), w, bias), **n)
        b.both("residual add", lambda x, y: x + y, (r(tokens, h), r(tokens, h)), **n)
        b.both("bias add", lambda x, c: x + c, (r(tokens, h), bias), **n)
        b.both("dropout", lambda x: F.dropout(x, 0.1), (r(tokens, h),), **n)
        f = 4 * h if h == 2048 else int(3.5 * h)
        b.both("silu times", lambda a, c: F.silu(a) * c, (r(tokens, f), r(tokens, f)), tokens=tokens, width=f)
        b.both("gelu tanh", lambda a: F.gelu(a, approximate="tanh"), (r(tokens, f),), tokens=tokens, width=f)
        b.both("gelu erf", F.gelu, (r(tokens, f),), tokens=tokens, width=f)
        d = 64 if h == 2048 else 128
        turns = torch.polar(torch.ones(tokens, d // 2, device="cuda"), torch.randn(tokens, d // 2, device="cuda"))

        def complex_rope(x):
            y = torch.view_as_complex(x.float().reshape(1, tokens, -1, d // 2, 2))
            return torch.view_as_real(y * turns[None, :, None, :]).flatten(3).type_as(x)

        b.both("rope complex", complex_rope, (r(1, tokens, h // d, d),), **n)
        b.both("repeat kv 4", lambda x: x.repeat_interleave(4, 1), (r(tokens, h // d // 4, d),), **n)
        heads = r(tokens, h // d, d)
        b.both("qk norm", lambda x, g: F.rms_norm(x, (d,), g, 1e-6), (heads, r(d)), head_dim=d, **n)
        torch.cuda.empty_cache()
    for tokens, v, h in ((8192, 128256, 2048), (8192, 128256, 4096), (8192, 32000, 4096), (16384, 50304, 2048)):
        for kind in ("uniform", "skewed"):
            ids = torch.randint(0, v, (tokens,), device="cuda")
            if kind == "skewed":  # as words are: the most frequent token is a twentieth
                ids = (v ** torch.rand(tokens, device="cuda")).long().clamp(max=v - 1)
            b.both("embedding, ids %s" % kind, lambda w: F.embedding(ids, w), (r(v, h),), tokens=tokens, vocab=v, hidden=h)
        torch.cuda.empty_cache()
    for heads, s in ((32, 2048), (16, 4096)):
        b.both("softmax of fp32 scores", lambda x: F.softmax(x.float(), -1).to(BF), (r(1, heads, s, s),), heads=heads, tokens=s)


def transformers(b):
    """As transformers 5 does it: norms in fp32, rotary by halves, autocast's casts."""
    for tokens, h in ROWS[:3]:
        d = 64 if h == 2048 else 128
        n = dict(tokens=tokens, hidden=h)
        for name, dtype in (("bf16", BF), ("fp32", FP)):
            w = r(h, dtype=dtype)

            def norm(x, w):
                y = x.to(FP)
                y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
                return w * y.to(x.dtype)

            b.both("transformers norm of %s" % name, norm, (r(tokens, h, dtype=dtype), w), **n)
            b.both("residual add %s" % name, lambda x, y: x + y, (r(tokens, h, dtype=dtype), r(tokens, h, dtype=dtype)), **n)
        cos, sin = (r(1, 1, tokens, d, grad=False) for _ in range(2))

        def halves(x):
            a, c = x[..., :d // 2], x[..., d // 2:]
            return x * cos + torch.cat((-c, a), -1) * sin

        b.both("rope halves, heads first", halves, (r(1, h // d, tokens, d),), **n)
        kv = r(1, h // d // 4, tokens, d)
        b.both("repeat kv 4 by expand", lambda x: x[:, :, None].expand(1, h // d // 4, 4, tokens, d).reshape(1, h // d, tokens, d),
               (kv,), **n)
        b.one("cast fp32 to bf16", lambda x=r(tokens, h, dtype=FP, grad=False): x.to(BF), **n)
        b.one("cast bf16 to fp32", lambda x=r(tokens, h, grad=False): x.to(FP), **n)
        for rank in (8, 16, 64):
            x, a, c, y = r(tokens, h), r(rank, h, dtype=FP), r(h, rank, dtype=FP), r(tokens, h)

            def adapter(x, a, c, y):
                with torch.autocast("cuda", dtype=BF):
                    return y + F.linear(F.linear(x.to(FP), a), c) * 2.0

            b.both("LoRA of fp32 under autocast", adapter, (x, a, c, y), rank=rank, **n)
        torch.cuda.empty_cache()


def loss(b):
    for tokens, v in ((8192, 128256), (8192, 32000), (4096, 151936), (16384, 50304)):
        labels = torch.randint(0, v, (tokens,), device="cuda")
        n = dict(tokens=tokens, vocab=v)
        b.both("cross_entropy of float()", lambda x: F.cross_entropy(x.float(), labels), (r(tokens, v),), **n)
        b.both("cross_entropy of bf16", lambda x: F.cross_entropy(x, labels), (r(tokens, v),), **n)

        def chunked(x):
            return sum(F.cross_entropy(p.float(), t, reduction="sum") for p, t in zip(x.chunk(8), labels.chunk(8))) / tokens

        b.both("cross_entropy by 8 chunks", chunked, (r(tokens, v),), **n)
        torch.cuda.empty_cache()
    try:
        from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction as Plain
        from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction as Fused
        for tokens, v, h in ((8192, 128256, 2048), (8192, 128256, 4096), (8192, 32000, 4096)):
            labels = torch.randint(0, v, (tokens,), device="cuda")
            b.one("Liger cross-entropy, forward with gradient",
                  lambda x=r(tokens, v): Plain.apply(x.detach().clone().requires_grad_(), labels, None), tokens=tokens, vocab=v)
            b.one("clone of logits", lambda x=r(tokens, v, grad=False): x.clone(), tokens=tokens, vocab=v)
            b.one("Liger fused linear cross-entropy, forward with gradient",
                  lambda x=r(tokens, h), w=r(v, h): Fused.apply(x, w, labels), tokens=tokens, vocab=v, hidden=h,
                  flops=6 * tokens * v * h)
            torch.cuda.empty_cache()
    except Exception as fault:
        b.write("liger_kernel", error=str(fault)[:160])


def optimizer(b):
    for k in (1, 64, 512):
        n = 1 << 28
        parts = [torch.nn.Parameter(torch.randn(n // k, device="cuda")) for _ in range(k)]
        for p in parts:
            p.grad = torch.randn_like(p)
        row = dict(parameters=n, tensors=k)
        b.one("adamw fused fp32", torch.optim.AdamW(parts, lr=1e-5, fused=True).step, **row)
        b.one("adamw foreach fp32", torch.optim.AdamW(parts, lr=1e-5, foreach=True).step, **row)
        b.one("clip_grad_norm foreach", lambda: torch.nn.utils.clip_grad_norm_(parts, 1.0, foreach=True), **row)
        narrow = [torch.nn.Parameter(p.detach().to(BF)) for p in parts]
        for p in narrow:
            p.grad = torch.randn_like(p)
        b.one("adamw fused bf16", torch.optim.AdamW(narrow, lr=1e-5, fused=True).step, **row)
        b.one("sgd foreach fp32", torch.optim.SGD(parts, lr=1e-5, momentum=0.9, foreach=True).step, **row)
        del parts, narrow
        torch.cuda.empty_cache()


def sharding(b):
    """FSDP2's copies of one block on one rank, by PyTorch's own operators."""
    shapes = [(4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (14336, 4096), (14336, 4096), (4096, 14336), (4096,), (4096,)]
    parts = [torch.randn(*s, device="cuda") for s in shapes]
    sizes = [p.numel() for p in parts]
    n = sum(sizes)
    gathered = torch.empty(n, device="cuda", dtype=BF)
    b.one("fsdp cast of shards", lambda: [p.to(BF) for p in parts], parameters=n, tensors=len(parts))
    narrow = [p.to(BF).view(-1) for p in parts]
    b.one("fsdp copy in", lambda: torch._foreach_copy_(list(gathered.split(sizes)), narrow), parameters=n, tensors=len(parts))
    outs = [torch.empty(1, k, device="cuda", dtype=BF) for k in sizes]
    b.one("fsdp copy out", lambda: torch.split_with_sizes_copy(gathered.view(1, -1), sizes, dim=1, out=outs), parameters=n,
          tensors=len(parts))
    grads = [p.to(BF) for p in parts]
    wide = torch.empty(1, n, device="cuda")
    b.one("fsdp chunk_cat to fp32", lambda: torch._chunk_cat(grads, dim=0, num_chunks=1, out=wide), parameters=n,
          tensors=len(parts))
    b.one("accumulate fp32", lambda: torch._foreach_add_(parts, [p.clone() for p in parts]), parameters=n, tensors=len(parts))


def products(b):
    shapes = ((896, 896), (896, 4864), (1536, 1536), (1536, 8960), (2048, 2048), (2048, 8192), (3072, 3072), (3072, 8192),
              (4096, 1024), (4096, 4096), (4096, 6144), (4096, 14336), (14336, 4096), (8192, 1024), (8192, 8192),
              (8192, 28672), (28672, 8192), (4096, 32000), (4096, 128256), (2048, 128256))
    for tokens in (1024, 2048, 4096, 8192, 16384):
        for k, n in shapes:
            a, w, g = r(tokens, k, grad=False), r(n, k, grad=False), r(tokens, n, grad=False)
            row = dict(m=tokens, k=k, n=n, flops=2 * tokens * k * n)
            b.one("product forward", lambda: a @ w.t(), **row)
            b.one("product input gradient", lambda: g @ w, **row)
            b.one("product weight gradient", lambda: g.t() @ a, **row)
        torch.cuda.empty_cache()


def attention(b):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for backend, name in ((SDPBackend.FLASH_ATTENTION, "flash2"), (SDPBackend.CUDNN_ATTENTION, "cudnn")):
        for d, heads in ((64, 32), (96, 16), (128, 32), (192, 16), (256, 16)):
            for s in (1024, 2048, 4096, 8192, 16384, 32768):
                sequences = max(1, 8192 // s)
                q, k, v = (r(sequences, heads, s, d) for _ in range(3))
                with sdpa_kernel(backend):
                    b.both("attention " + name, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                           (q, k, v), batch=sequences, heads=heads, tokens=s, head_dim=d, flops=2 * sequences * heads * s * s * d)
            torch.cuda.empty_cache()
        for d, heads, kv in ((64, 32, 8), (128, 32, 8), (128, 64, 8)):
            for s in (2048, 8192):
                sequences = 8192 // s
                q, k, v = r(sequences, heads, s, d), r(sequences, kv, s, d), r(sequences, kv, s, d)
                with sdpa_kernel(backend):
                    b.both("attention %s, grouped" % name,
                           lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), (q, k, v),
                           batch=sequences, heads=heads, kv_heads=kv, tokens=s, head_dim=d, flops=2 * sequences * heads * s * s * d)
        for s in (2048, 4096, 8192):
            sequences = 8192 // s
            q, k, v = r(sequences, 16, s, 192), r(sequences, 16, s, 192), r(sequences, 16, s, 128)
            with sdpa_kernel(backend):
                b.both("attention %s, values of 128" % name,
                       lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), batch=sequences,
                       heads=16, tokens=s, head_dim=192, flops=sequences * 16 * s * s * 320)
            q = r(sequences, 16, s, 64)
            with sdpa_kernel(backend):
                b.both("attention %s, no mask" % name, F.scaled_dot_product_attention, (q, q, q), batch=sequences, heads=16,
                       tokens=s, head_dim=64, flops=4 * sequences * 16 * s * s * 64)


def windows(b):
    """FlashAttention 2 within a window, by PyTorch's own operator; its backward from the same call."""
    for d, heads in ((64, 32), (128, 32)):
        for s in (4096, 16384):
            for window in (128, 512, 1024, 4096):
                if window >= s:
                    continue
                q, k, v = (r(1, s, heads, d, grad=False) for _ in range(3))

                def forward():
                    return torch.ops.aten._flash_attention_forward(q, k, v, None, None, s, s, 0.0, True, False,
                                                                   window_size_left=window, window_size_right=0)

                row = dict(batch=1, heads=heads, tokens=s, head_dim=d, window=window)
                b.one("attention flash2 in a window", forward, direction="forward", **row)
                try:
                    out, lse, state, unused = forward()[:4]
                    g = torch.randn_like(out)
                    b.one("attention flash2 in a window", lambda: torch.ops.aten._flash_attention_backward(
                        g, q, k, v, out, lse, None, None, s, s, 0.0, True, state, unused, window_size_left=window,
                        window_size_right=0), direction="backward", **row)
                except Exception as fault:
                    b.write("attention flash2 in a window", error=str(fault)[:160], **row)
        torch.cuda.empty_cache()


def experts(b):
    grouped = getattr(F, "grouped_mm", None) or torch._grouped_mm
    for e, k, n in ((8, 4096, 14336), (8, 14336, 4096), (64, 2048, 1408), (64, 1408, 2048), (128, 2048, 768), (128, 768, 2048),
                    (64, 2048, 1024), (32, 2880, 2880)):
        for rows in (8192, 32768, 65536):
            a, w = r(rows, k), r(e, k, n)
            row = dict(experts=e, rows=rows, k=k, n=n, flops=2 * rows * k * n)
            offs = torch.arange(1, e + 1, device="cuda", dtype=torch.int32) * (rows // e)
            b.both("grouped product", lambda a, w: grouped(a, w, offs=offs), (a, w), **row)
            if rows == 32768:  # the loads of a router that balances with a loss: up to twice the mean
                load = torch.rand(e, device="cuda") + 0.5
                skewed = (load.cumsum(0) / load.sum() * rows).round().int()
                b.both("grouped product, uneven", lambda a, w: grouped(a, w, offs=skewed), (a, w), **row)
        torch.cuda.empty_cache()
    for tokens, h, top, e in ((8192, 2048, 8, 128), (8192, 4096, 2, 8), (16384, 2048, 8, 64)):
        ids = torch.randint(0, e, (tokens * top,), device="cuda")
        order = torch.argsort(ids, stable=True)
        row = dict(tokens=tokens, hidden=h, top_k=top)
        b.one("argsort of experts", lambda: torch.argsort(ids, stable=True), **row)
        b.one("bincount", lambda: torch.bincount(ids, minlength=e), **row)
        b.both("gather rows", lambda x: x[order // top], (r(tokens, h),), **row)
        b.both("index_add rows", lambda y: torch.zeros(tokens, h, device="cuda", dtype=BF).index_add(0, order // top, y),
               (r(tokens * top, h),), **row)
        b.both("router, softmax and top-k", lambda x, w: torch.topk(F.softmax((x @ w.t()).float(), -1), top, -1)[0],
               (r(tokens, h), r(e, h)), experts=e, **row)
        weights = r(tokens * top, 1, dtype=FP)
        b.both("scale of routed rows in fp32", lambda y, s: (y.float() * s).to(BF), (r(tokens * top, h), weights), **row)
        b.both("silu times on routed rows", lambda a, c: F.silu(a) * c, (r(tokens * top, 1408), r(tokens * top, 1408)), **row)
        torch.cuda.empty_cache()


def fp8(b):
    f8 = torch.float8_e4m3fn
    one = torch.ones((), device="cuda")

    def by_tensor(x):
        return (x / (x.abs().amax().float() / 448)).to(f8)

    def by_row(x):
        return (x / (x.abs().amax(1, keepdim=True).float() / 448)).to(f8)

    def by_block(x):
        y = x.float().view(x.shape[0], -1, 128)
        return (y / (y.abs().amax(-1, keepdim=True) / 448)).to(f8).view_as(x)

    def by_square(x):
        y = x.float().view(x.shape[0] // 128, 128, -1, 128)
        return (y / (y.abs().amax((1, 3), keepdim=True) / 448)).to(f8).view_as(x)

    compiled = {f.__name__: torch.compile(f) for f in (by_tensor, by_row, by_block, by_square)}
    for m, k, n in ((8192, 4096, 4096), (8192, 4096, 14336), (8192, 14336, 4096), (8192, 8192, 28672), (4096, 7168, 4096)):
        a, w, x = torch.randn(m, k, device="cuda").to(f8), torch.randn(n, k, device="cuda").to(f8), r(m, k, grad=False)
        row = dict(m=m, k=k, n=n, flops=2 * m * k * n)
        b.one("fp8 product, scale a tensor", lambda: torch._scaled_mm(a, w.t(), one, one, out_dtype=BF), **row)
        b.one("fp8 product, scale a tensor, fast",
              lambda: torch._scaled_mm(a, w.t(), one, one, out_dtype=BF, use_fast_accum=True), **row)
        rows, cols = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
        b.one("fp8 product, scale a row", lambda: torch._scaled_mm(a, w.t(), rows, cols, out_dtype=BF, use_fast_accum=True), **row)
        blocks, squares = torch.ones(k // 128, m, device="cuda").t(), torch.ones(n // 128, k // 128, device="cuda").t()
        b.one("fp8 product, scale a block", lambda: torch._scaled_mm(a, w.t(), blocks, squares, out_dtype=BF), **row)
        for name, fn in compiled.items():
            b.one("fp8 cast %s, compiled" % name, lambda: fn(x), m=m, k=k)
        b.one("fp8 transpose", lambda: a.t().contiguous(), m=m, k=k)
        torch.cuda.empty_cache()


def compiled(b):
    torch._functorch.config.donated_buffer = False  # backward is called again and again
    for tokens, h, f in ((8192, 4096, 14336), (8192, 2048, 8192), (4096, 896, 4864)):
        b.both("compiled silu times", torch.compile(lambda a, c: F.silu(a) * c), (r(tokens, f), r(tokens, f)), tokens=tokens, width=f)
        w = r(h)
        b.both("compiled add and rms_norm", torch.compile(lambda x, y, w: F.rms_norm(x + y, (h,), w, 1e-5)),
               (r(tokens, h), r(tokens, h), w), tokens=tokens, hidden=h)
        b.both("compiled rms_norm", torch.compile(lambda x, w: F.rms_norm(x, (h,), w, 1e-5)), (r(tokens, h), w), tokens=tokens, hidden=h)
    for tokens, v in ((8192, 128256), (8192, 32000)):
        labels = torch.randint(0, v, (tokens,), device="cuda")
        b.both("compiled cross_entropy of float()", torch.compile(lambda x: F.cross_entropy(x.float(), labels)), (r(tokens, v),),
               tokens=tokens, vocab=v)


def scans(b):
    """Mamba-2 by mamba_ssm's Triton kernels, delta nets and the short convolution by flash-linear-attention's."""
    try:
        from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn
        from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined as scan
        for tokens, heads, d, groups, state, chunk in ((8192, 64, 64, 8, 128, 256), (8192, 128, 64, 8, 128, 128),
                                                       (8192, 80, 64, 1, 128, 256)):
            a = -torch.rand(heads, device="cuda").exp()
            row = dict(tokens=tokens, heads=heads, head_dim=d, groups=groups, state=state, chunk=chunk)
            b.both("Mamba-2 scan", lambda x, t, k, q: scan(x, t, a, k, q, chunk, dt_softplus=True),
                   (r(1, tokens, heads, d), r(1, tokens, heads), r(1, tokens, groups, state), r(1, tokens, groups, state)), **row)
            w = r(heads * d)
            b.both("Mamba-2 gated norm", lambda x, w, z: rmsnorm_fn(x, w, None, z=z, group_size=heads * d // groups,
                                                                   norm_before_gate=False),
                   (r(tokens, heads * d), w, r(tokens, heads * d)), **row)
    except Exception as fault:
        b.write("mamba_ssm", error=str(fault)[:300])
    try:
        from fla.modules.conv.causal_conv1d import causal_conv1d
        for tokens, width in ((8192, 6144), (8192, 8192)):
            b.both("short convolution, 4 taps", lambda x, w: causal_conv1d(x, w, activation="silu")[0],
                   (r(1, tokens, width), r(width, 4)), tokens=tokens, width=width)
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule as delta
        for tokens, heads, keys in ((8192, 32, 16), (8192, 48, 16), (32768, 32, 16)):
            g, beta = F.logsigmoid(r(1, tokens, heads, grad=False, dtype=FP)), r(1, tokens, heads).sigmoid().detach().requires_grad_()
            rows = [r(1, tokens, heads, 128) for _ in range(3)]
            b.both("gated delta rule", lambda q, k, v, t: delta(q, k, v, g, t, use_qk_l2norm_in_kernel=True)[0], (*rows, beta),
                   tokens=tokens, heads=heads, head_dim=128)
    except Exception as fault:
        b.write("fla", error=str(fault)[:300])


GROUPS = (host, memory, pointwise, transformers, loss, optimizer, sharding, products, attention, windows, experts, fp8, compiled, scans)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    chosen = sys.argv[3:]
    unknown = set(chosen) - {g.__name__ for g in GROUPS}
    if unknown:
        sys.exit("gpu-operators: unknown group %s" % ", ".join(sorted(unknown)))
    if not torch.cuda.is_available():
        print("no GPU: PyTorch sees none", file=sys.stderr)
        sys.exit(4)
    bench = Bench(sys.argv[1], float(sys.argv[2]))
    bench.write("machine", torch=torch.__version__, device=torch.cuda.get_device_name(0))
    for group in GROUPS:
        if chosen and group.__name__ not in chosen:
            continue
        began = time.time()
        try:
            group(bench)
        except Exception as fault:
            bench.write(group.__name__, error=str(fault)[:300])
        torch.cuda.empty_cache()
        print("%s %.1f s, %.0f s left" % (group.__name__, time.time() - began, bench.deadline - time.time()), flush=True)


main()
