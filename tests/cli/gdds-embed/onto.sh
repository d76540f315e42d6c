# Onto a vocabulary learned here: the mean of the pieces, exactly; special tokens by role; the rest by the rule; onto itself.
python3 -c '
import numpy as np
np.save("e.npy", np.arange(27 * 2, dtype="<f4").reshape(27, 2) ** 2)'
gdds-embed -q --vocab text8 e.npy > source.h5
printf 'the cat sat on the mat and the hat %.0s' {1..50} > text
gdds-tokenize learn -q --size 262 --mask text > v.h5
gdds-embed source.h5 --onto v.h5 -o none.h5 || echo "exit $?"
gdds-embed source.h5 --onto v.h5 --extra-rows zero > onto.h5
python3 - <<'PY'
import h5py, numpy as np
f = h5py.File("onto.h5")
vectors = np.load("e.npy").astype("f8")
bytes_, offsets, special = bytes(f["vocab/bytes"][:]), f["vocab/offsets"][:], f["vocab/types"][:]
tokens = [bytes_[a:b] for a, b in zip(offsets, offsets[1:])]
letters = b" abcdefghijklmnopqrstuvwxyz"
for i, token in enumerate(tokens):
    known = not special[i] and all(c in letters for c in token)
    expected = np.mean([vectors[letters.index(c)] for c in token], axis=0) if known else np.zeros(2)
    assert f["present"][i] == known and np.array_equal(f["embedding"][i], expected.astype("f4")), token
print(sum(len(t) > 1 for t in tokens), "longer tokens")
PY
gdds-embed -q onto.h5 --onto v.h5 --extra-rows zero --no-history > again.h5
gdds-embed -q onto.h5 --no-history | cmp - again.h5
