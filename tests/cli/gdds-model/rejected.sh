# What is wrong with a file is said by name, and nothing is written.
attempt() { echo "-- $*" >&2; gdds-model "$@" > out || echo "exit $?" >&2; test ! -s out; }
sample model m.h5
gdds-model export m.h5 > ours.safetensors
# As the public ones are: without what ours say about themselves.
python3 - <<'PY'
import json, struct
data = open("ours.safetensors", "rb").read()
n, = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + n])
del header["__metadata__"]["gdds_network"]
def save(path, header):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
save("good.safetensors", header)
header["__metadata__"]["gdds_network"] = "{}"
save("nothing.safetensors", header)
PY
import() { attempt import --heads 2 --vocab m.h5 "$@"; }
head -c 3000 good.safetensors > cut.safetensors
import cut.safetensors
head -c 5 good.safetensors > shorter.safetensors
import shorter.safetensors
python3 - <<'PY'
import json, struct
data = open("good.safetensors", "rb").read()
n, = struct.unpack("<Q", data[:8])
header, body = json.loads(data[8:8 + n]), bytearray(data[8 + n:])
def save(path, header, body):
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
def without(name): return {k: v for k, v in header.items() if k != name}
save("missing.safetensors", without("blocks.0.norm2.weight"), body)
save("headless.safetensors", without("output_layer.linear.weight"), body)
turned = dict(header["blocks.0.mlp.2.weight"], shape=[16, 4])
save("turned.safetensors", header | {"blocks.0.mlp.2.weight": turned}, body)
at = header["output_layer.linear.bias"]["data_offsets"][0]
save("nan.safetensors", header, body[:at] + struct.pack("<f", float("nan")) + body[at + 4:])
extra = dict(header["blocks.0.norm2.weight"], data_offsets=[len(body), len(body) + 16])
save("extra.safetensors", header | {"blocks.0.norm3.weight": extra}, body + bytes(16))
whole = dict(header["blocks.0.norm2.weight"], dtype="I32")
save("whole.safetensors", header | {"blocks.0.norm2.weight": whole}, body)
PY
for name in missing headless turned nan extra whole nothing; do import $name.safetensors; done
echo "GGUF, but no more" > some.gguf
import some.gguf
import m.h5
import nowhere.safetensors
attempt import --heads 2 --vocab bytes good.safetensors
attempt import --heads 2 --vocab text8 good.safetensors
attempt import --heads 3 --vocab m.h5 good.safetensors
attempt import --vocab m.h5 good.safetensors
attempt import good.safetensors
attempt import --heads 2 --vocab m.h5 --process nonsense good.safetensors
# Checkpoints of our own that contradict themselves.
change() { cp m.h5 bad.h5; python3 -c "
import h5py, numpy as np
f = h5py.File('bad.h5', 'r+')
$1
del f.attrs['gdds_digest']"; }
change "del f['ema/blocks.0.norm1.weight']"
attempt export bad.h5
change "del f['ema']"
gdds-model export bad.h5 | cmp - <(gdds-model export --weights raw m.h5)
change "f['ema/blocks.0.norm1.weight'][1] = np.inf"
attempt export bad.h5
change "del f['ema/blocks.0.norm1.weight']; f['ema/blocks.0.norm1.weight'] = np.ones(5, 'f4')"
attempt export bad.h5
change "t = bytes(f['config'][()]).replace(b'\"states\":11', b'\"states\":12'); del f['config']; f['config'] = np.frombuffer(t, 'u1')"
attempt info bad.h5
change "del f['config']; f['config'] = np.frombuffer(b'[]', 'u1')"
attempt info bad.h5
change "f.attrs['step'] = -1"
attempt info bad.h5
attempt export --weights best m.h5
attempt nothing
attempt info good.safetensors
