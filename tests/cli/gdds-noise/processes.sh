# Every process, by its options and through a file of its own, from a file, a pipe, written once more: the same tokens and
# the same digest of the process; and --threads does not matter.
make-sample tokens --sequences 100 > t.h5
make-sample embedding > e.h5
gdds-knn -q --k 3 --bandwidth-neighbour 2 e.h5 -o n.h5
gdds-knn -q --k 10 --bandwidth-neighbour 2 --metric cosine --bandwidth code e.h5 -o code.h5
seq 0.5 0.1 1.5 > rates
printf '%d\n' 0 0 0 1 1 1 2 2 2 2 2 > clusters
python3 - <<'PY'
import h5py, numpy as np
with h5py.File("t.h5") as t: vocab = dict(t["vocab"].attrs)
kernels = np.random.default_rng(1).random((2, 11, 11)) ** 4  # [piece, from, to]
kernels /= kernels.sum(axis=2, keepdims=True)
for name in ("dense.h5", "sparse.h5"):
    with h5py.File(name, "w") as f:
        f.attrs["gdds_kind"], f.attrs["gdds_schema"] = "process", 1
        for key in ("name", "hash", "size"): f.require_group("vocab").attrs[key] = vocab[key]
        p = f.create_group("process")
        p.attrs["name"], p.attrs["schedule"] = "matrix", "cosine"
        p["config"] = np.frombuffer(b"{}", dtype="u1")
        f["matrix/times"] = [0, 0.4, 1]
        f["matrix/exit"] = np.linspace(0, 2, 22).reshape(2, 11)
        if name == "dense.h5":
            f["matrix/dense"] = kernels
        else:
            f["matrix/offsets"] = (np.arange(12) * 11)[None, :] + np.array([[0], [121]])
            f["matrix/rows"] = np.tile(np.arange(11, dtype="i4"), 22)
            f["matrix/weights"] = kernels.reshape(-1)
PY
tokens() { h5dump -d /xt "$1" | grep '(' | sha256sum | cut -c 1-16; }
digest() { gdds-noise -q --describe "$@" | sed -n 's/^digest\t//p'; }
both() {
  gdds-noise -q "$@" t.h5 > a.h5
  gdds-noise -q -j 1 "$@" t.h5 | cmp - a.h5
  gdds-noise process -q "$@" t.h5 -o p.h5
  gdds-noise -q --process p.h5 t.h5 > b.h5
  gdds-noise process -q --no-history --process p.h5 > again.h5
  gdds-noise process -q --no-history "$@" t.h5 | cmp - again.h5
  cat again.h5 | gdds-noise -q --process - t.h5 > c.h5
  a=$(tokens a.h5)
  [[ $a == "$(tokens b.h5)" && $a == "$(tokens c.h5)" ]] || echo "other tokens: $*"
  [[ $(digest "$@" t.h5) == "$(digest --process p.h5 t.h5)" ]] || echo "other digest: $*"
  echo "${*:2}"
}
both --process absorb
both --process absorb --schedule geometric --sigma-max 9
both --process uniform --schedule exponential --schedule-rate 5
both --process hybrid --hybrid-share 0.3 --hybrid-gamma 1.5
both --process sik-knn --neighbours n.h5
both --process sik-knn --neighbours code.h5 --kernel-perplexity 2.5 --reset-floor 0.2 --schedule cosine
both --process sik-knn --neighbours n.h5 --reset-floor 0 --reset-ceiling 0
both --process sik-dense --neighbours n.h5 --embedding e.h5 --epsilon 0.5 --epsilon-end 0.05 --schedule cosine --reset-ceiling 0.01
both --process sik-dense --neighbours code.h5 --embedding e.h5 --kernel-perplexity 3
both --process hierarchical --clusters 4 --embedding e.h5 --cluster-rate 2
both --process hierarchical --clusters clusters
both --process mask-rates --mask-rates rates
both --process mask-rates --mask-rates rates --mask-form power --schedule linear
both --process dense.h5
both --process sparse.h5
# The vocabulary of a process comes from a file of its options; and the name of a file may look like a number.
gdds-noise process -q --process sik-knn --neighbours n.h5 | gdds-copy --kind process > /dev/null
gdds-noise process -q --process sik-dense --neighbours n.h5 --embedding e.h5 > /dev/null
cp clusters 4
gdds-noise -q --process hierarchical --clusters ./4 t.h5 > /dev/null
gdds-noise -q --process hierarchical --clusters <(cat clusters) t.h5 > /dev/null
