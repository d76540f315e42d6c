# Out and in again is the same network, value by value: under the public names, with their prefix and buffers, in bf16, and
# with a vocabulary that lacks the mask.
sample model m.h5
gdds-model export m.h5 > ema.safetensors
gdds-model export --weights raw m.h5 -o raw.safetensors
cat > safetensors.py <<'PY'
import json, struct, numpy as np
def load(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    assert header.pop("__metadata__")["format"] == "pt" and (8 + n) % 8 == 0
    body = data[8 + n:]
    assert sum(t["data_offsets"][1] - t["data_offsets"][0] for t in header.values()) == len(body)
    return {k: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]) for k, t in header.items()}
def save(path, tensors):
    header, body = {}, b""
    for k, v in tensors.items():
        kind = {"float32": "F32", "uint16": "BF16", "float64": "F64"}[v.dtype.name]
        header[k] = {"dtype": kind, "shape": list(v.shape), "data_offsets": [len(body), len(body) + v.nbytes]}
        body += v.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
PY
python3 - <<'PY'
import h5py, numpy as np
from safetensors import load
f = h5py.File("m.h5")
for path, group in ("ema.safetensors", "ema"), ("raw.safetensors", "parameters"):
    tensors = load(path)
    assert set(tensors) == set(f[group])
    assert all(np.array_equal(tensors[name], f[group][name][()]) for name in tensors)
print(len(tensors), "tensors")
PY
gdds-model import --vocab m.h5 ema.safetensors > again.h5
gdds-model export again.h5 | cmp - ema.safetensors
gdds-model info again.h5 | grep -E '^(arch|heads|length|step|ema|optimizer|posterior|process|vocabulary)[[:space:]]'

echo "the public form"
python3 - <<'PY'
import numpy as np
from safetensors import load, save
tensors = load("ema.safetensors")
more = {"backbone." + k: v for k, v in tensors.items()} | {"backbone.rotary_emb.inv_freq": np.ones(3, "f4")}
save("public.safetensors", more)
# The values of the sample are multiples of 1/128 below 1: bf16 has them all.
save("bf16.safetensors", {k: (v.view("<u4") >> 16).astype("<u2") for k, v in more.items()})
PY
for form in public bf16; do
  gdds-model import -q --vocab m.h5 --heads 2 $form.safetensors | gdds-model export >again.safetensors
  python3 -c 'import numpy as np; from safetensors import load; a, b = load("ema.safetensors"), load("again.safetensors"); assert a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)'
done

echo "every network that can be trained"
sample tokens tokens.h5 --sequences 8
for objective in snapshot campbell ar; do
  gdds-train -q -j 1 --size tiny --steps 1 --batch-size 4 --precision fp32 --objective $objective tokens.h5 -o $objective.h5
  gdds-model export $objective.h5 >$objective.safetensors
  gdds-model import -q --vocab tokens.h5 $objective.safetensors | gdds-model export | cmp - $objective.safetensors
done

echo "one class more than the vocabulary has tokens"
python3 - <<'PY'
import numpy as np
from safetensors import load, save
tensors = load("ema.safetensors")
random = np.random.default_rng(1)
big = {k: random.random([64 * n // 4 if n in (4, 8, 12, 16, 24) else 28 if n == 11 else n for n in v.shape], dtype="f4") for k, v in tensors.items()}
save("mdlm.safetensors", big)
save("ar.safetensors", {k: v for k, v in big.items() if "sigma_map" not in k and "adaLN" not in k})
PY
gdds-model import --vocab text8 --no-time-conditioning mdlm.safetensors > mdlm.h5
gdds-model info mdlm.h5 | grep -E '^(m|heads|time_conditioning|process|vocabulary)[[:space:]]'
gdds-tokenize convert -q --mask text8 > masked.h5
gdds-model import -q --vocab masked.h5 --process uniform --schedule cosine mdlm.safetensors > duo.h5
gdds-model info duo.h5 | grep -E '^(m|process|schedule)[[:space:]]'
test "$(gdds-model info mdlm.h5 | grep hash)" = "$(gdds-model info duo.h5 | grep hash)"
gdds-model import --vocab text8 ar.safetensors > ar.h5
gdds-model info ar.h5 | grep -E '^(arch|process)[[:space:]]'
