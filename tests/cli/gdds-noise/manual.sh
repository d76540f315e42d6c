# What the manual page shows works as it stands there: the process written with h5py, and the examples.
for i in {1..300}; do echo "my sister number $((i * 7919 % 1000)) is happy in house $((i * 31 % 100))"; done > corpus.txt
gdds-tokenize learn -q --size 300 --mask corpus.txt > vocab.h5
gdds-tokenize -q --vocab vocab.h5 --length 16 corpus.txt > tokens.h5
python3 -c 'import numpy as np; np.save("e.npy", np.random.default_rng(1).random((300, 8), dtype="f4"))'
gdds-embed -q --vocab vocab.h5 e.npy > embedding.h5
gdds-knn -q --k 32 embedding.h5 > neighbours.h5
python3 - "$source_dir/man/gdds-noise.1" <<'PY'
import sys
blocks, shell = [], []
for line in open(sys.argv[1]):
    if line == ".EX\n": blocks.append("")
    elif line == ".EE\n": shell.append(blocks[-1])
    elif len(blocks) > len(shell): blocks[-1] += line.replace("\\-", "-").replace("\\(rs", "\\")
assert shell[0].startswith("import h5py") and len(shell) == 5
open("ring.py", "w").write(shell[0])
open("examples", "w").write("".join(shell[1:]))
PY
python3 ring.py
gdds-noise --process ring.h5 --time 0.05 tokens.h5 > ring-snapshots.h5
python3 -c "
import h5py, numpy as np
f = h5py.File('ring-snapshots.h5')
steps = (f['xt'][:].astype(int) - f['x0'][:]) % 300
assert set(np.unique(steps)) <= {0, 1, 2, 3, 297, 298, 299} and 0.03 < f['jumped'][:].mean() < 0.07"
bash -eu examples > lines
grep -c '^t=' lines
test -s batches.h5
