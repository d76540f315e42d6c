# .npy, safetensors, GGUF and raw floats made here: the numbers come back as they were, through h5py.
cat > make.py <<'PY'
import json, struct
import numpy as np
numbers = np.random.default_rng(1).standard_normal((27, 32)).astype("<f4")
np.save("numbers.npy", numbers)
np.save("double.npy", numbers.astype("<f8"))
numbers.tofile("numbers.raw")
numbers.astype("<f2").tofile("half.raw")
bf16 = (numbers.view("<u4") >> 16).astype("<u2")
parts = {"wpe.weight": ("F32", np.zeros((2, 32), "<f4")), "wte.weight": ("F32", numbers),
         "half": ("F16", numbers.astype("<f2")), "brain": ("BF16", bf16), "ids": ("I64", np.zeros((27, 32), "<i8"))}
header, data = {"__metadata__": {"format": "pt"}}, b""
for name, (dtype, values) in parts.items():
    header[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": [len(data), len(data) + values.nbytes]}
    data += values.tobytes()
header = json.dumps(header).encode()
open("model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)
gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 17) + b"token_embd.weight" + struct.pack("<IQQIQ", 2, 32, 27, 8, 0)
quants = np.clip(np.round(numbers * 40), -127, 127).astype("i1")
blocks = b"".join(np.float16(0.025).tobytes() + row.tobytes() for row in quants)
open("model.gguf", "wb").write(gguf + b"\0" * (-len(gguf) % 32) + blocks)
np.save("q8.npy", quants * np.float32(np.float16(0.025)))
PY
cat > same.py <<'PY'
import sys, h5py, numpy as np
kind, expected = sys.argv[2], np.load(sys.argv[3])
if kind == "bf16": expected = (expected.view("<u4") >> 16 << 16).astype("<u4").view("<f4")
if kind == "half": expected = expected.astype("<f2")
with h5py.File(sys.argv[1]) as f:
    assert np.array_equal(f["embedding"][:].astype("<f4"), expected.astype("<f4")), sys.argv
    assert bytes(f["vocab/bytes"][:]) == b" abcdefghijklmnopqrstuvwxyz" and "present" not in f
PY
python3 make.py
try() { local kind=$1 expected=$2; shift 2; gdds-embed -q --vocab text8 "$@" > out.h5; python3 same.py out.h5 $kind $expected; }
try exact numbers.npy numbers.npy
try exact numbers.npy double.npy
try exact numbers.npy numbers.raw --raw-dim 32
try half numbers.npy half.raw --raw-dim 32 --raw-type float16
try exact numbers.npy model.safetensors
try half numbers.npy model.safetensors --tensor half
try bf16 numbers.npy model.safetensors --tensor brain
try exact q8.npy model.gguf
try half numbers.npy model.safetensors --dtype float16
# And once more through our own file and a pipe.
gdds-embed -q --vocab text8 numbers.npy | gdds-embed -q - > again.h5
python3 same.py again.h5 exact numbers.npy
gdds-embed --vocab text8 model.safetensors --normalise -o out.h5
h5dump -d /history -b LE -o /dev/stderr out.h5 2>&1 > /dev/null | jq -r .command | sed 's/> .*//'
