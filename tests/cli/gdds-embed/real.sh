# Real models, where scripts/fetch-data put them: MiniLM's vectors as they are in its file, SmolLM2's onto bytes and text8.
cache=${GDDS_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/gdds}
minilm=$cache/minilm smollm2=$cache/smollm2/smollm2-135m-q4_1.gguf
if [[ ! -f $minilm/model.safetensors || ! -f $smollm2 ]]; then
  echo "skipped: no MiniLM and SmolLM2 in $cache"
  exit 77
fi
gdds-embed --vocab "$minilm/vocab.txt" "$minilm/model.safetensors" > minilm.h5
gdds-embed "$smollm2" > smollm2.h5
gdds-embed --onto text8 "$smollm2" > text8.h5
gdds-embed -q --onto smollm2.h5 smollm2.h5 > itself.h5
python3 - "$minilm/model.safetensors" <<'PY'
import json, struct, sys
import h5py, numpy as np
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
entry = json.loads(data[8:8 + size])["embeddings.word_embeddings.weight"]
begin, end = (8 + size + x for x in entry["data_offsets"])
assert np.array_equal(h5py.File("minilm.h5")["embedding"][:], np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]))
whole, part = h5py.File("smollm2.h5"), h5py.File("text8.h5")
text, offsets = bytes(whole["vocab/bytes"][:]), whole["vocab/offsets"][:]
ids = {text[a:b]: i for i, (a, b) in enumerate(zip(offsets, offsets[1:]))}
for i, letter in enumerate(b" abcdefghijklmnopqrstuvwxyz"):
    assert np.array_equal(part["embedding"][i], whole["embedding"][ids[bytes([letter])]])
assert np.array_equal(h5py.File("itself.h5")["embedding"][:], whole["embedding"][:])
PY
