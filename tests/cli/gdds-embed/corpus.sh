# From a corpus: the same bytes for any number of threads and through a pipe; words used alike are near each other; tokens that
# do not occur are zero and marked; what lies beyond /lengths is not seen.
words=(red green blue) things=(house car door)
for i in {1..400}; do echo "the ${words[i % 3]} ${things[i / 3 % 3]} is here"; done > text
gdds-tokenize learn -q --size 300 --eos --pad text > v.h5
gdds-tokenize -q --vocab v.h5 --length 32 --documents line --apart --remainder keep text > t.h5
gdds-embed --dim 8 t.h5 > a.h5
gdds-embed -q --dim 8 -j 1 t.h5 | cmp - a.h5
cat t.h5 | gdds-embed -q --dim 8 -j 3 - | cmp - a.h5
python3 - <<'PY'
import h5py, numpy as np
f = h5py.File("a.h5")
bytes_, offsets = bytes(f["vocab/bytes"][:]), f["vocab/offsets"][:]
tokens = [bytes_[a:b] for a, b in zip(offsets, offsets[1:])]
rows, present = f["embedding"][:], f["present"][:]
assert not rows[present == 0].any() and present[tokens.index(b"q")] == 0 and present[tokens.index(b"<|pad|>")] == 0
unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
red, green, house = (unit[tokens.index(t)] for t in (b" red", b" green", b" house"))
assert red @ green > red @ house
PY
gdds-embed --dim 400 t.h5 -o b.h5 || echo "exit $?"
gdds-embed -q --dim 8 t.h5 --window 2 --smoothing 1 | cmp -s - a.h5 && echo "--window does nothing"
exit 0
