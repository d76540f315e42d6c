# How t is drawn: fixed, from --t-min on, in mirrored pairs, one in each stratum.
make-sample tokens --sequences 512 > t.h5
check() { gdds-noise -q "${@:2}" t.h5 > s.h5; python3 -c "
import h5py, numpy as np
t = h5py.File('s.h5')['time'][:]
assert $1, t"; }
check '(t == 0.25).all()' --time 0.25
check '(t == 0).all()' --time 0
check '(t == 1).all()' --time 1
check 't.min() > 0.6 and t.max() < 1 and t.max() - t.min() > 0.39' --t-min 0.6
check '0.001 < t.min() < 0.01 and t.max() > 0.99 and abs(t.mean() - 0.5) < 0.05'
check 'np.allclose(t[0::2] + t[1::2], 1.2, atol=1e-12) and abs(t[0::2] - t[0]).max() > 0.3' --times antithetic --t-min 0.2
check 'np.array_equal(np.floor((t - 0.5) * 2 * 64), np.tile(np.arange(64), 8))' --times stratified --t-min 0.5
check 'np.array_equal(np.floor(t * 8), np.tile(np.arange(8), 64))' --times stratified --strata 8 --t-min 0
# At t = 0 nothing has jumped; at t = 1 nearly everything.
gdds-noise -q --time 0 t.h5 > begin.h5
gdds-noise -q --time 1 t.h5 > end.h5
python3 -c "
import h5py
print(h5py.File('begin.h5')['jumped'][:].sum(), h5py.File('end.h5')['jumped'][:].mean() > 0.99)"
