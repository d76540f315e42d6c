# Files that are not what they should be: one line each, status 3 (1 where there is no such file), and nothing is written.
attempt() { gdds-noise "$@" > out || echo "exit $?"; test ! -s out; }
make-sample tokens > t.h5
make-sample embedding > e.h5
make-sample embedding --variant 5 > e5.h5
make-sample neighbours > raw.h5
gdds-knn -q --k 3 --bandwidth-neighbour 2 e.h5 -o n.h5
gdds-noise process -q --process uniform t.h5 -o u.h5
echo abcabc | gdds-tokenize -q --vocab bytes --length 2 > bytes.h5
python3 - <<'PY'
import h5py, numpy as np, shutil
def changed(source, path, change):
    def edit(name):
        shutil.copy(source, name)
        with h5py.File(name, "r+") as f:
            f.attrs.pop("gdds_digest", None)
            f.pop("history", None)
            if "@" in path:
                group, key = path.split("@")
                f[group].attrs[key] = change
            else:
                attributes, values = dict(f[path].attrs), change(f[path][()])
                del f[path]
                f[path] = values
                for key, value in attributes.items(): f[path].attrs[key] = value
    return edit
def put(at, value):
    def change(x):
        x = x.copy()
        x[at] = value
        return x
    return change
changed("t.h5", "tokens", put((1, 2), 11))("id.h5")
changed("t.h5", "tokens", lambda x: put((1, 2), -1)(x.astype("i4")))("negative-id.h5")
changed("t.h5", "lengths", put(3, 8))("length.h5")
changed("t.h5", "/vocab@mask", 11)("mask.h5")
changed("t.h5", "/vocab@hash", "0" * 32)("other.h5")
with h5py.File("none.h5", "w") as f, h5py.File("t.h5") as t:
    f.attrs["gdds_kind"], f.attrs["gdds_schema"] = "tokens", 1
    for key in ("name", "hash", "size", "mask"): f.require_group("vocab").attrs[key] = t["vocab"].attrs[key]
    f["tokens"] = np.zeros((0, 7), "u2")
changed("n.h5", "distances", put((4, 1), np.nan))("nan.h5")
changed("n.h5", "distances", put((4, 1), -1))("negative.h5")
changed("n.h5", "bandwidths", put(2, 0))("zero.h5")
changed("n.h5", "bandwidths", put(2, np.inf))("infinite.h5")
changed("n.h5", "ids", put((4, 1), 4))("self.h5")
changed("n.h5", "ids", put((4, 1), 11))("far.h5")
changed("n.h5", "distances", lambda x: x[:, ::-1])("reversed.h5")
changed("reversed.h5", "ids", lambda x: x[:, ::-1])("unsorted.h5")
with h5py.File("n.h5") as n, h5py.File("k0.h5", "w") as f:
    for key in ("gdds_kind", "gdds_schema"): f.attrs[key] = n.attrs[key]
    for key in ("name", "hash", "size"): f.require_group("vocab").attrs[key] = n["vocab"].attrs[key]
    f["ids"], f["distances"], f["bandwidths"] = np.zeros((11, 0), "i4"), np.zeros((11, 0)), n["bandwidths"][:]
    for key, value in n["ids"].attrs.items(): f["ids"].attrs[key] = value

def process(name, kind="matrix", config="{}", schedule="log-linear", size=11, **parts):
    with h5py.File(name + ".h5", "w") as f, h5py.File("t.h5") as t:
        f.attrs["gdds_kind"], f.attrs["gdds_schema"] = "process", 1
        for key in ("name", "hash"): f.require_group("vocab").attrs[key] = t["vocab"].attrs[key]
        f["vocab"].attrs["size"] = size
        p = f.create_group("process")
        p.attrs["name"], p.attrs["schedule"] = kind, schedule
        p["config"] = np.frombuffer(config.encode("latin-1"), dtype="u1")
        for path, values in parts.items(): f[path.replace("__", "/")] = values
F = np.full((1, 11, 11), 1 / 11)
ones = np.ones((1, 11))
process("sum", matrix__dense=F * 1.001)
process("minus", matrix__dense=put((0, 2, slice(0, 2)), (-1 / 11, 3 / 11))(F))
process("nan-entry", matrix__dense=put((0, 2, 3), np.nan)(F))
process("rate", matrix__dense=F, matrix__exit=put((0, 4), -1)(ones))
process("nan-rate", matrix__dense=F, matrix__exit=put((0, 4), np.nan)(ones))
process("huge", matrix__dense=F, matrix__exit=put((0, 4), 1e12)(ones))
process("nowhere", matrix__dense=put((0, 5), 0)(F))
process("begins", matrix__dense=F, matrix__times=[0.1, 1])
process("ends", matrix__dense=F, matrix__times=[0, 0.9])
process("back", matrix__dense=np.repeat(F, 3, axis=0), matrix__times=[0, 0.6, 0.5, 1])
process("pieces", matrix__dense=np.repeat(F, 2, axis=0))
process("nothing")
process("both", matrix__dense=F, matrix__offsets=np.arange(12)[None, :])
offsets, rows, weights = np.arange(12)[None, :], (np.arange(11, dtype="i4") + 1) % 11, np.ones(11)
process("row", matrix__offsets=offsets, matrix__rows=put(3, 11)(rows), matrix__weights=weights)
process("negative-row", matrix__offsets=offsets, matrix__rows=put(3, -1)(rows), matrix__weights=weights)
process("offsets", matrix__offsets=put((0, 11), 12)(offsets), matrix__rows=rows, matrix__weights=weights)
process("decreasing", matrix__offsets=put((0, 4), 2)(offsets), matrix__rows=rows, matrix__weights=weights)
process("no-weights", matrix__offsets=offsets, matrix__rows=rows)
process("shape", matrix__dense=F[:, :10])
process("json", "absorb", '{"mask": 10')
process("utf8", "absorb", '{"mask": 10, "x": "\xff"}')
process("array", "absorb", "[10]")
process("part", "absorb", '{"mask": 10, "schedule": "cosine"}')
process("word", "absorb", '{"mask": "last"}')
process("mask-range", "absorb", '{"mask": 11}')
process("half", "absorb", '{"mask": 1.5}')
process("maskless", "absorb")
process("eps", "uniform", '{"schedule": {"eps": 0.7}}')
process("sigma", "uniform", '{"schedule": {"sigma_min": 8}}', "geometric")
process("schedule", "uniform", schedule="sigmoid")
process("two-schedules", "uniform", '{"schedule": {"name": "cosine"}}')
process("two-names", "uniform", '{"name": "absorb"}')
process("unknown", "brownian")
process("smaller", "absorb", '{"mask": 9}', size=10)
process("rateless", "mask-rates", '{"mask": 10}')
process("rates", "mask-rates", '{"mask": 10}', mask_rates=put(3, 0)(np.ones(11)))
process("form", "mask-rates", '{"mask": 10, "form": "root"}', mask_rates=np.ones(11))
process("clusters", "hierarchical", '{"mask": 10}', clusters=put(3, -1)(np.ones(11, "i4")))
process("table", "sik-knn")
PY
attempt n.h5
attempt absent.h5
attempt --process absent.h5 t.h5
attempt --process t.h5 t.h5
attempt --process u.h5 bytes.h5
attempt bytes.h5
attempt --process hybrid bytes.h5
for name in id negative-id length mask none; do attempt $name.h5; done
attempt --show abc n.h5
attempt --process sik-knn --neighbours t.h5 t.h5
attempt --process sik-knn --neighbours n.h5 other.h5
attempt --process sik-knn --neighbours n.h5 bytes.h5
for name in nan negative zero infinite self far k0; do attempt --process sik-knn --neighbours $name.h5 t.h5; done
attempt --process sik-dense --neighbours raw.h5 --embedding e.h5 t.h5
attempt --process sik-dense --neighbours n.h5 --embedding n.h5 t.h5
attempt --process sik-dense --neighbours n.h5 --embedding e5.h5 t.h5
attempt --process sik-dense --neighbours unsorted.h5 --embedding e.h5 t.h5
for name in sum minus nan-entry rate nan-rate huge nowhere begins ends back pieces nothing both row negative-row offsets decreasing no-weights shape \
  json utf8 array part word mask-range half maskless eps sigma schedule two-schedules two-names unknown smaller rateless rates form clusters table; do
  attempt --process $name.h5 t.h5
done
seq 0 9 > ten
seq 0 11 > twelve
printf '%s\n' 7 1 2 3 x 5 6 7 8 9 10 > word
printf '%s\n' 0 1 2 -3 4 5 6 7 8 9 10 > minus
printf '%s\n' 0 1 2.5 3 4 5 6 7 8 9 10 > half
for name in ten twelve word minus half absent .; do attempt --process hierarchical --clusters $name t.h5; done
printf '%s\n' 1 2 3 4 5 6 7 8 9 10 inf > infinite
printf '%s\n' 1 2 3 4 5 6 7 8 9 10 1e9 > large
: > empty
for name in ten word infinite large empty; do attempt --process mask-rates --mask-rates $name t.h5; done
