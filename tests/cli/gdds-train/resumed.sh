# A run in two parts is the run in one: parameters, average, optimiser and curve are the same bits; and the same command
# gives the same bytes.
sample tokens tokens.h5 --sequences 16
options=(-q -j 1 --size tiny --model-dim 32 --model-heads 2 --precision fp32 --batch-size 4 --micro-batch 2 --warm-up 2 --report-every 1)
gdds-train "${options[@]}" --steps 6 tokens.h5 -o whole.h5
gdds-train "${options[@]}" --steps 6 tokens.h5 -o again.h5
cmp whole.h5 again.h5
gdds-train "${options[@]}" --steps 3 tokens.h5 -o part.h5
gdds-train "${options[@]}" --steps 6 --resume part.h5 tokens.h5 -o resumed.h5
same() {
  python3 - "$@" <<'PYTHON'
import h5py, numpy as np, sys
a, b = map(h5py.File, sys.argv[1:])
def compare(name, item):
    if isinstance(item, h5py.Dataset) and name != "history":
        assert np.array_equal(item[()], b[name][()], equal_nan=item.dtype.kind == "f"), name
a.visititems(compare)
print(a.attrs["step"], a["curve"].shape[0], len(a["parameters"]) == len(a["ema"]))
PYTHON
}
same whole.h5 resumed.h5
# Also where it was stopped between two rows of the curve and validated at its end, which the run in one did not do there.
rows=("${options[@]}" --report-every 4 --validation tokens.h5 --validate-every 8 --log-file curve.tsv)
gdds-train "${rows[@]}" --steps 10 tokens.h5 -o whole.h5
mv curve.tsv whole.tsv
for steps in 3 4 5; do
  gdds-train "${rows[@]}" --steps $steps tokens.h5 -o part.h5
  gdds-train "${rows[@]}" --steps 10 --resume part.h5 tokens.h5 -o resumed-later.h5
  same whole.h5 resumed-later.h5
  cmp whole.tsv curve.tsv
done
# The lines of the history, in order, are a script that makes the file again, on as many cores (one).
/usr/bin/python3 -c 'import h5py, json; print("\n".join(json.loads(l)["command"] for l in bytes(h5py.File("resumed.h5")["history"][()]).decode().splitlines()))' >script
grep -c ' -o ' script
mkdir again
cp tokens.h5 "again/$(grep -o '[0-9a-f]*\.h5' script | head -n 1)"
(cd again && grep gdds-train ../script | taskset -c "$(taskset -pc $$ | sed "s,.*: ,,; s,[^0-9].*,,")" bash -e 2>/dev/null && cp "$(tail -n 1 ../script | grep -o '[0-9a-f]*\.h5$')" last.h5)
/usr/bin/python3 -c 'import h5py, numpy as np; a, b = h5py.File("resumed.h5")["parameters"], h5py.File("again/last.h5")["parameters"]; print(all(np.array_equal(a[k][()], b[k][()]) for k in a))'
