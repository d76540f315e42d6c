# A stream: cut into other batches the samples are the same; each epoch has every sequence once, in an order of its own;
# into a file, a pipe, with other threads: the same bytes; a stream of one batch is a file.
make-sample tokens --sequences 8 > t.h5
gdds-noise --batch-size 4 --batches 6 --paths t.h5 -o four.h5
gdds-noise -q --batch-size 4 --batches 6 --paths -j 1 - < t.h5 | cat | cmp - four.h5
gdds-noise -q --batch-size 8 --batches 3 --paths t.h5 > eight.h5
gdds-noise -q --batch-size 5 --batches 5 --paths t.h5 > five.h5 # one sample more
cat > read.py <<'PY'
import h5py, io, numpy as np, struct
def samples(name):
    stream, rows = open(name, "rb"), []
    while head := stream.read(36):
        size, = struct.unpack_from("<Q", head, 28)
        with h5py.File(io.BytesIO(head + stream.read(size - 36)), "r") as b:
            assert b.attrs["gdds_kind"] == b"snapshots"
            for i in range(len(b["time"])):
                row = [b[name][i].tolist() for name in ("sequence", "time", "x0", "xt", "jumped", "lengths")]
                at = b["path/offsets"][i]
                begin, end = at[0], at[-1]
                rows.append(row + [(at - begin).tolist(), b["path/times"][begin:end].tolist(), b["path/states"][begin:end].tolist()])
    return rows
four, eight, five = samples("four.h5"), samples("eight.h5"), samples("five.h5")
print(len(four), len(eight), len(five))
assert four == eight == five[:24]
order = [row[0] for row in four]
epochs = [order[i:i + 8] for i in (0, 8, 16)]
assert all(sorted(e) == list(range(8)) for e in epochs) and epochs[0] != epochs[1] != epochs[2]
tokens = h5py.File("t.h5")["tokens"][:].tolist()
assert all(row[2] == tokens[row[0]] for row in four)
assert len({tuple(row[3]) + (row[1],) for row in four}) == 24  # a sequence has other noise each time
PY
python3 read.py
gdds-noise -q --batch-size 3 --batches 1 t.h5 | gdds-copy > one.h5
gdds-noise -q --batch-size 4 --batches 6 t.h5 | gdds-copy --stream > /dev/null
