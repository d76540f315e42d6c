# With a validation file the curve has its loss, the checkpoint with the least is kept beside the last one, and a resumed run
# knows it. The learning rate is far too high, so that the best is not the last.
sample tokens train.h5 --sequences 16
sample tokens valid.h5 --sequences 8
options=(-q -j 1 --size tiny --model-dim 32 --model-heads 2 --precision fp32 --batch-size 4 --warm-up 0 --learning-rate 0.5 --clip 0 --ema 0.1 --validation valid.h5 --validate-every 2 --report-every 1)
gdds-train "${options[@]}" --steps 6 --log-file curve.tsv train.h5 -o whole.h5
gdds-train "${options[@]}" --steps 4 train.h5 -o part.h5
gdds-train "${options[@]}" --steps 8 --resume part.h5 train.h5 -o resumed.h5
gdds-train "${options[@]}" --steps 8 train.h5 -o longer.h5
/usr/bin/python3 - <<'PYTHON'
import h5py, math, os
def look(name):
    curve = h5py.File(name + ".h5")["curve"][()]
    valid = {int(row[0]): row[4] for row in curve if not math.isnan(row[4])}
    best = min(valid, key=valid.get)
    return valid, best
for name in ("whole", "longer"):
    valid, best = look(name)
    kept = h5py.File(name + ".best.h5")
    assert kept.attrs["step"] == best, (kept.attrs["step"], best)
    assert kept.attrs["step"] < h5py.File(name + ".h5").attrs["step"], "the best is the last: the case shows nothing"
valid, best = look("longer")
again, _ = look("resumed")
assert valid == again
print(sorted(valid))
# A resumed run writes its best only where it is better than that of the run it goes on from.
assert os.path.exists("resumed.best.h5") == (best > 4)
PYTHON
# At the end there is a validation in any case, whether or not the last step has a row already.
for every in 1 2 4; do
  gdds-train "${options[@]}" --validate-every 0 --report-every $every --save-every 2 --steps 4 --log-file end.tsv train.h5 -o end.h5
  /usr/bin/python3 -c 'import h5py, math; assert not math.isnan(h5py.File("end.h5")["curve"][-1, 4])'
  tail -n 1 end.tsv | awk '{ print $1, $5 == "nan" ? "none" : "a number" }'
done
cut -f1,5 curve.tsv | awk 'NR == 1 || $2 == "nan" || $2 == "-nan" { print; next } { print $1, "a number" }'
