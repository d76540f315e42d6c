# Snapshots through a pipe train the network that built-in noising trains.
sample tokens tokens.h5 --sequences 16
options=(-q -j 1 --size tiny --model-dim 32 --model-heads 2 --precision fp32 --batch-size 4 --warm-up 2 --steps 3)
gdds-noise process -q --process uniform tokens.h5 -o p.h5
gdds-train "${options[@]}" --process p.h5 tokens.h5 -o inside.h5
gdds-noise -q --process p.h5 --batch-size 4 --batches 3 tokens.h5 | gdds-train "${options[@]}" --process p.h5 - -o outside.h5
same() {
  python3 - <<'PYTHON'
import h5py, numpy as np
a, b = h5py.File("inside.h5"), h5py.File("outside.h5")
for group in ("parameters", "ema"):
    def compare(name, item, group=group):
        if isinstance(item, h5py.Dataset):
            assert np.array_equal(item[()], b[group][name][()]), name
    a[group].visititems(compare)
PYTHON
}
same
# The vocabulary comes with the first batch; and tokens come through a pipe as well.
python3 -c 'import h5py; a, b = (h5py.File(f)["vocab/bytes"][()].tobytes() for f in ("inside.h5", "outside.h5")); assert a == b and a'
cat tokens.h5 | gdds-train "${options[@]}" --process p.h5 - -o outside.h5
same
gdds-train "${options[@]}" --process p.h5 -o outside.h5 <tokens.h5
same
cat tokens.h5 tokens.h5 | gdds-train "${options[@]}" --process p.h5 - -o none.h5 || echo "two: $?"
sample neighbours n.h5
gdds-train "${options[@]}" - -o none.h5 <n.h5 || echo "neighbours: $?"
# Whole paths, too.
gdds-train "${options[@]}" --objective campbell --process p.h5 tokens.h5 -o inside.h5
gdds-noise -q --process p.h5 --paths --time 1 --batch-size 4 --batches 3 tokens.h5 | gdds-train "${options[@]}" --objective campbell --process p.h5 - -o outside.h5
same
