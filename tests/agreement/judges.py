# judges.py PROGRAM FOLDER [GGUF]: GPT-2 and Llama in PyPI's torch, in double precision, written from their published
# descriptions: the logits of PROGRAM (judge-logits) are the same on the same weights, up to a few times the rounding that was
# found. These are random ones in FOLDER, at the widths of all four sizes of GPT-2 and in every way of storing numbers that GGUF
# has here, and those of the real GGUF.
import json, os, struct, subprocess, sys
import numpy as np, torch
from torch import nn
from torch.nn import functional as F

program, folder, *real = sys.argv[1:]
draw = torch.Generator().manual_seed(20261118)
torch.set_grad_enabled(False)
torch.set_num_threads(2)
WORST = {"GPT-2": 2e-5, "Llama": 6e-5, "real": 2.4e-4}  # found: 4.3e-6, 2.0e-5, and 7.7e-5 of SmolLM2
environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}  # ours needs no stand-ins

def normal(*shape, scale, middle=0.0):
    return middle + scale * torch.randn(*shape, generator=draw)

def compare(kind, what, path, ids, expected):
    answer = subprocess.run([program, path, *map(str, ids)], capture_output=True, env=environment)
    if answer.returncode != 0:
        sys.exit(f"{what}: {answer.stderr.decode()}")
    ours = torch.from_numpy(np.frombuffer(answer.stdout, dtype=np.float32).copy()).double().view(expected.shape)
    difference, spread = (ours - expected).abs().max().item(), expected.std().item()
    print(f"{what}: {ours.numel()} logits, standard deviation {spread:.3f}, largest difference {difference:.2e}")
    if not difference < WORST[kind] or not spread > 0.5:
        sys.exit(f"{what}: allowed are a difference of {WORST[kind]} and a standard deviation above 0.5")

# Attention by explicit weights; q k v [heads, length, width].
def attention(q, k, v):
    length = q.shape[1]
    scores = q @ k.transpose(1, 2) / q.shape[2] ** 0.5
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    return (scores.masked_fill(future, -torch.inf).softmax(-1) @ v).transpose(0, 1).reshape(length, -1)

# ---- GPT-2 ------------------------------------------------------------------------------------------------------------

def random_gpt2(d, blocks, tokens=300, context=48):
    w = {"wte.weight": normal(tokens, d, scale=1.5 / d ** 0.5), "wpe.weight": normal(context, d, scale=0.05)}
    def norm(name):
        w[name + ".weight"], w[name + ".bias"] = normal(d, scale=0.2, middle=1.0), normal(d, scale=0.1)
    def affine(name, rows, columns):
        w[name + ".weight"], w[name + ".bias"] = normal(rows, columns, scale=0.7 / rows ** 0.5), normal(columns, scale=0.1)
    for n in range(blocks):
        norm(f"h.{n}.ln_1"), affine(f"h.{n}.attn.c_attn", d, 3 * d), affine(f"h.{n}.attn.c_proj", d, d)
        norm(f"h.{n}.ln_2"), affine(f"h.{n}.mlp.c_fc", d, 4 * d), affine(f"h.{n}.mlp.c_proj", 4 * d, d)
    norm("ln_f")
    return w

def write_safetensors(path, w):
    header, at = {}, 0
    for name, tensor in w.items():
        size = 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor in w.values():
            out.write(tensor.numpy().tobytes())

def gpt2(w, ids, blocks):
    w = {name: tensor.double() for name, tensor in w.items()}
    d = w["wte.weight"].shape[1]
    def norm(x, name):
        layer = nn.LayerNorm(d, eps=1e-5, dtype=torch.double)
        layer.load_state_dict({"weight": w[name + ".weight"], "bias": w[name + ".bias"]})
        return layer(x)
    def affine(x, name):
        return torch.addmm(w[name + ".bias"], x, w[name + ".weight"])
    def heads(x):
        return x.view(len(ids), d // 64, 64).transpose(0, 1)
    gelu = nn.GELU(approximate="tanh")
    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    for n in range(blocks):
        q, k, v = affine(norm(x, f"h.{n}.ln_1"), f"h.{n}.attn.c_attn").split(d, dim=1)
        x = x + affine(attention(heads(q), heads(k), heads(v)), f"h.{n}.attn.c_proj")
        x = x + affine(gelu(affine(norm(x, f"h.{n}.ln_2"), f"h.{n}.mlp.c_fc")), f"h.{n}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T

# ---- GGUF -------------------------------------------------------------------------------------------------------------

TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 8: "Q8_0", 30: "BF16"}
BLOCK = {"F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34)}  # numbers, bytes

def numbers_of(kind, raw):
    raw = np.frombuffer(raw, dtype=np.uint8).reshape(-1, BLOCK[kind][1])
    half = lambda at: raw[:, at:at + 2].copy().view(np.float16).astype(np.float64)
    nibbles = lambda at: np.concatenate([raw[:, at:] & 15, raw[:, at:] >> 4], axis=1).astype(np.float64)
    if kind == "F32": values = raw.copy().view(np.float32)
    elif kind == "F16": values = half(0)
    elif kind == "BF16": values = (raw.copy().view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif kind == "Q8_0": values = half(0) * raw[:, 2:].copy().view(np.int8)
    elif kind == "Q4_0": values = half(0) * (nibbles(2) - 8)
    elif kind == "Q4_1": values = half(0) * nibbles(4) + half(2)
    return torch.from_numpy(values.astype(np.float64).reshape(-1))

# Random numbers of about this size, as stored.
def stored(kind, count, scale, middle=0.0):
    x = normal(count, scale=scale, middle=middle)
    if kind == "F32": return x.numpy().tobytes()
    if kind == "F16": return x.half().numpy().tobytes()
    if kind == "BF16": return (x.numpy().view(np.uint32) >> 16).astype(np.uint16).tobytes()
    numbers, size = BLOCK[kind]
    raw = torch.randint(0, 256, (count // numbers, size), generator=draw).to(torch.uint8).numpy()
    def put(at, base):
        values = base * (1 + 0.3 * torch.rand(len(raw), generator=draw).numpy())
        raw[:, at:at + 2] = values.astype(np.float16).reshape(-1, 1).view(np.uint8)
    put(0, scale / (70 if kind == "Q8_0" else 4.6))
    if kind == "Q4_1": put(2, -1.5 * scale)
    return raw.tobytes()

def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s

def write_gguf(path, keys, tensors):  # tensors: name -> (kind, shape slowest first, bytes)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, value in keys.items():
        header += text(name)
        if isinstance(value, str): header += struct.pack("<I", 8) + text(value)
        elif isinstance(value, int): header += struct.pack("<II", 4, value)
        else: header += struct.pack("<If", 6, value)
    data = b""
    for name, (kind, shape, raw) in tensors.items():
        code = next(n for n, k in TYPES.items() if k == kind)
        header += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), code, len(data))
        data += raw + bytes(-len(raw) % 32)
    with open(path, "wb") as out:
        out.write(header + bytes(-len(header) % 32) + data)

def read_gguf(path):
    raw, at = memoryview(open(path, "rb").read()), 24
    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, raw, at)
        at += struct.calcsize("<" + form)
        return value[0]
    def take_text():
        nonlocal at
        size = take("Q")
        at += size
        return bytes(raw[at - size:at]).decode()
    scalar = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    def take_value(kind):
        if kind == 8: return take_text()
        if kind == 9:
            inner = take("I")
            return [take_value(inner) for _ in range(take("Q"))]
        return take(scalar[kind])
    _, version, tensors, keys = struct.unpack_from("<4sIQQ", raw, 0)
    values = {}
    for _ in range(keys):
        name = take_text()
        values[name] = take_value(take("I"))
    entries = []
    for _ in range(tensors):
        name = take_text()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        entries.append((name, shape, TYPES[take("I")], take("Q")))
    start = -(-at // 32) * 32
    w = {}
    for name, shape, kind, offset in entries:
        numbers, size = BLOCK[kind]
        w[name] = numbers_of(kind, raw[start + offset:start + offset + int(np.prod(shape)) // numbers * size]).view(shape)
    return values, w

# ---- Llama ------------------------------------------------------------------------------------------------------------

def write_random_llama(path, kind, tied, d=192, heads=6, key_heads=2, wide=320, blocks=3, tokens=260):
    keyed, tensors = d // heads * key_heads, {}
    def matrix(name, rows, columns, scale=1.0):
        tensors[name] = (kind, [rows, columns], stored(kind, rows * columns, scale / columns ** 0.5))
    def norm(name):
        tensors[name] = ("F32", [d], stored("F32", d, 0.2, 1.0))
    matrix("token_embd.weight", tokens, d, 2.0)
    for n in range(blocks):
        norm(f"blk.{n}.attn_norm.weight"), norm(f"blk.{n}.ffn_norm.weight")
        for name, rows, columns in (("attn_q", d, d), ("attn_k", keyed, d), ("attn_v", keyed, d), ("attn_output", d, d),
                                    ("ffn_gate", wide, d), ("ffn_up", wide, d), ("ffn_down", d, wide)):
            matrix(f"blk.{n}.{name}.weight", rows, columns)
    norm("output_norm.weight")
    if not tied: matrix("output.weight", tokens, d, 2.0)
    write_gguf(path, {"general.architecture": "llama", "llama.block_count": blocks, "llama.embedding_length": d,
                      "llama.feed_forward_length": wide, "llama.attention.head_count": heads, "llama.attention.head_count_kv": key_heads,
                      "llama.context_length": 64, "llama.rope.freq_base": 3000.0, "llama.attention.layer_norm_rms_epsilon": 1e-4}, tensors)

def llama(keys, w, ids):
    number = lambda name: keys["llama." + name]
    d, heads, key_heads = number("embedding_length"), number("attention.head_count"), number("attention.head_count_kv")
    head = d // heads
    # Positions as complex factors on pairs of neighbouring components.
    angle = torch.outer(torch.arange(len(ids)).double(), number("rope.freq_base") ** (-torch.arange(0, head, 2).double() / head))
    factor = torch.polar(torch.ones_like(angle), angle).unsqueeze(1)
    def turned(x, count):
        pairs = torch.view_as_complex(x.reshape(len(ids), count, head // 2, 2))
        return torch.view_as_real(pairs * factor).reshape(len(ids), count, head).transpose(0, 1)
    def norm(x, name):
        layer = nn.RMSNorm(d, eps=number("attention.layer_norm_rms_epsilon"), dtype=torch.double)
        layer.load_state_dict({"weight": w[name + ".weight"]})
        return layer(x)
    linear = lambda x, name: x @ w[name + ".weight"].T
    per_query = lambda x: torch.stack([x[h * key_heads // heads] for h in range(heads)])
    x = w["token_embd.weight"][ids]
    for n in range(number("block_count")):
        b = f"blk.{n}."
        y = norm(x, b + "attn_norm")
        q, k = turned(linear(y, b + "attn_q"), heads), turned(linear(y, b + "attn_k"), key_heads)
        v = linear(y, b + "attn_v").view(len(ids), key_heads, head).transpose(0, 1)
        x = x + linear(attention(q, per_query(k), per_query(v)), b + "attn_output")
        y = norm(x, b + "ffn_norm")
        x = x + linear(F.silu(linear(y, b + "ffn_gate")) * linear(y, b + "ffn_up"), b + "ffn_down")
    return linear(norm(x, "output_norm"), "output" if "output.weight" in w else "token_embd")

# ---- the comparisons --------------------------------------------------------------------------------------------------

def some_ids(tokens, length):
    return torch.randint(0, tokens, (length,), generator=draw).tolist()

for d, blocks in ((768, 12), (1024, 3), (1280, 2), (1600, 2)):
    w, ids = random_gpt2(d, blocks), some_ids(300, 40)
    write_safetensors(folder + "/gpt2.safetensors", w)
    compare("GPT-2", f"GPT-2, {d} wide, {blocks} blocks", folder + "/gpt2.safetensors", ids, gpt2(w, ids, blocks))
for kind, tied in (("F32", True), ("F16", False), ("BF16", False), ("Q8_0", True), ("Q4_0", False), ("Q4_1", True)):
    write_random_llama(folder + "/llama.gguf", kind, tied)
    keys, w = read_gguf(folder + "/llama.gguf")
    ids = some_ids(260, 50)
    compare("Llama", f"Llama, {kind}{', tied' if tied else ''}", folder + "/llama.gguf", ids, llama(keys, w, ids))
for path in real:
    keys, w = read_gguf(path)
    ids = some_ids(w["token_embd.weight"].shape[0], 32)
    compare("real", keys["general.name"], path, ids, llama(keys, w, ids))
