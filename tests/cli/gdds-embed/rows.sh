# Rows that are missing or too many, by each rule; which rows came from the source; zero rows.
python3 -c '
import numpy as np
numbers = np.arange(1, 55, dtype="<f4").reshape(27, 2)
np.save("e.npy", numbers)
numbers[4] = 0
np.save("zero.npy", numbers)
np.save("long.npy", np.concatenate([numbers, numbers * np.nan]))'
gdds-tokenize convert text8 --mask --pad > v.h5
show() { python3 -c '
import h5py, sys
f = h5py.File(sys.argv[1])
print(f["embedding"].dtype, f["embedding"].shape, f["embedding"][-2:].tolist(), f["present"][-3:].tolist() if "present" in f else "all")' "$1"; }
for rule in zero mean; do gdds-embed --vocab v.h5 --extra-rows $rule e.npy > $rule.h5; show $rule.h5; done
gdds-embed -q --vocab v.h5 --extra-rows random --no-history e.npy > a.h5
gdds-embed -q --vocab v.h5 --extra-rows random --no-history --seed 1 -j 3 e.npy | cmp - a.h5
gdds-embed -q --vocab v.h5 --extra-rows random --no-history --seed 2 e.npy | cmp -s - a.h5 && echo "the seed does nothing"
gdds-embed --vocab text8 --drop-rows long.npy > long.h5; show long.h5
gdds-embed --vocab text8 --normalise --dtype float16 zero.npy > n.h5; show n.h5
gdds-embed -q mean.h5 > again.h5; show again.h5
# A parameter of a model; a file that has only the name of its vocabulary takes the tokens from --vocab, if they are those.
make-sample model > model.h5
gdds-embed model.h5 --tensor blocks.0.attn_out.weight --extra-rows zero > m.h5; show m.h5
make-sample embedding > e.h5
gdds-tokenize convert e.h5 > sample.h5
python3 -c '
import h5py
f = h5py.File("e.h5", "r+")
for name in ("bytes", "offsets", "types"): del f["vocab"][name]
for name in ("model", "pretokenizer", "normalizer", "eos", "mask", "pad", "unk"): del f["vocab"].attrs[name]
del f.attrs["gdds_digest"]'
gdds-embed e.h5 -o none.h5 || echo "exit $?"
gdds-embed e.h5 --vocab text8 -o none.h5 || echo "exit $?"
gdds-embed e.h5 --vocab sample.h5 > named.h5; show named.h5
