# training.py BIN FOLDER NETWORK|"" PRECISION...: gdds-train and a training loop in PyPI's torch, in turns. Ours is timed as the tool, by
# the difference of a long run and a short one, which have starting up and saving in common; theirs after a step to warm up.
import math, os, statistics, subprocess, sys, time
import h5py, numpy as np, torch
from torch import nn
from torch.nn import functional as F

bin, folder, only, *precisions = sys.argv[1:]
environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}  # ours needs no stand-ins
torch.set_num_threads(len(os.sched_getaffinity(0)))
# name, width, blocks, heads, tokens, batch, length, steps of a round
SETTINGS = [("tiny", 128, 4, 4, 2048, 32, 128, 16), ("small", 768, 12, 12, 50257, 8, 256, 4)]
ROUNDS = 3

def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d, bias=False), nn.LayerNorm(d, bias=False)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Linear(4 * d, d))
        self.modulation = nn.Linear(128, 6 * d)
    def forward(self, x, c, cos, sin):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(c).unsqueeze(1).chunk(6, -1)
        q, k, v = (self.qkv(self.norm1(x) * (1 + scale1) + shift1).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)).unbind(0)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype), v).transpose(1, 2).flatten(2)
        x = x + gate1 * F.dropout(self.out(y), 0.1)
        return x + gate2 * F.dropout(self.mlp(self.norm2(x) * (1 + scale2) + shift2), 0.1)

class Ddit(nn.Module):
    def __init__(self, d, blocks, heads, tokens, length):
        super().__init__()
        self.embed, self.time = nn.Embedding(tokens, d), nn.Sequential(nn.Linear(256, 128), nn.SiLU(), nn.Linear(128, 128))
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(blocks))
        self.norm, self.modulation, self.linear = nn.LayerNorm(d, bias=False), nn.Linear(128, 2 * d), nn.Linear(d, tokens)
        angles = torch.arange(length)[:, None] * 10000.0 ** -(torch.arange(0, d // heads, 2) / (d // heads))
        self.register_buffer("cos", angles.cos()), self.register_buffer("sin", angles.sin())
        self.register_buffer("frequencies", torch.exp(-math.log(10000.0) * torch.arange(128) / 128))
    def forward(self, ids, sigma):
        angles = sigma[:, None] * self.frequencies
        c = F.silu(self.time(torch.cat([angles.cos(), angles.sin()], -1)))
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, c, self.cos, self.sin)
        shift, scale = self.modulation(c).unsqueeze(1).chunk(2, -1)
        return self.linear(self.norm(x) * (1 + scale) + shift)

class Rival:
    def __init__(self, d, blocks, heads, tokens, length, precision):
        self.net, self.tokens, self.precision = Ddit(d, blocks, heads, tokens, length), tokens, precision
        self.parameters = list(self.net.parameters())
        self.average = [p.detach().clone() for p in self.parameters]
        self.moments = [[torch.zeros_like(p) for p in self.parameters] for _ in range(2)]
        self.steps = [torch.zeros(()) for _ in self.parameters]
    def step(self, x0):
        t = torch.rand(len(x0), 1)
        alpha = 1 - 0.999 * t
        xt = torch.where(torch.rand(x0.shape) < alpha, x0, torch.randint(self.tokens, x0.shape))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            logits = self.net(xt, -alpha.log().squeeze(1))
        loss = F.cross_entropy(logits.float().flatten(0, 1), x0.flatten())
        self.net.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        with torch.no_grad():  # torch.optim.AdamW(fused=True) and what it calls, without the Python around it, which needs more packages
            torch._foreach_add_(self.steps, 1)
            torch._fused_adamw_(self.parameters, [p.grad for p in self.parameters], *self.moments, [], self.steps,
                                lr=3.5e-4, beta1=0.9, beta2=0.95, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)
            torch._foreach_lerp_(self.average, self.parameters, 1e-4)

def write_tokens(path, rows):
    with h5py.File(path, "w", libver=("v110", "v110")) as out:
        out.attrs["gdds_kind"], out.attrs["gdds_schema"] = np.bytes_("tokens"), np.int64(1)
        out.create_dataset("tokens", data=rows.astype("u2"), chunks=(1, rows.shape[1]), fletcher32=True)
        group = out.create_group("vocab")
        group.attrs["name"], group.attrs["hash"], group.attrs["size"] = np.bytes_("random"), np.bytes_("0" * 32), np.int64(rows.max() + 1)

print("network\tprecision\twhat\tbest tokens/s\tmedian tokens/s\ttimes torch")
for name, d, blocks, heads, tokens, batch, length, steps in SETTINGS:
    if only not in ("", name):
        continue
    rows = np.random.default_rng(1).integers(0, tokens, (64 * batch, length))
    rows[0, 0] = tokens - 1
    write_tokens(f"{folder}/tokens.h5", rows)
    for precision in precisions:
        rival = Rival(d, blocks, heads, tokens, length, precision)
        data = torch.from_numpy(rows)
        rival.step(data[:batch])
        def ours(n):
            start = time.perf_counter()
            subprocess.run([f"{bin}/gdds-train", "-q", "--process", "uniform", "--size", name, "--batch-size", str(batch), "--micro-batch", str(batch), "--precision", precision,
                            "--steps", str(n), f"{folder}/tokens.h5", "-o", f"{folder}/model.h5"], check=True, env=environment)
            return time.perf_counter() - start
        def theirs():
            start = time.perf_counter()
            for n in range(steps):
                rival.step(data[n * batch:(n + 1) * batch])
            return time.perf_counter() - start
        times = {"torch in Python": [], "gdds-train": []}
        for _ in range(ROUNDS):
            times["torch in Python"].append(theirs())
            times["gdds-train"].append(ours(steps + 1) - ours(1))
        base = statistics.median(times["torch in Python"])
        for what, seconds in times.items():
            rate = batch * length * steps
            print(f"{name}\t{precision}\t{what}\t{rate / min(seconds):.0f}\t{rate / statistics.median(seconds):.0f}\t{base / statistics.median(seconds):.2f}", flush=True)
