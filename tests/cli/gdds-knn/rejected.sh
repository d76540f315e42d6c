# Too many neighbours, numbers that are not finite, words that are not there, devices that are not there.
attempt() { gdds-knn "$@" > out || echo "exit $?"; test ! -s out; }
make-sample embedding > e.h5
attempt e.h5
attempt --k 3 --bandwidth-neighbour 2 --method faiss e.h5
attempt --k 0 e.h5
attempt --k 3 --bandwidth-neighbour 2 --show zzz e.h5
attempt --k 3 --bandwidth-neighbour 2 --metric l1 e.h5
attempt --k 3 --bandwidth-neighbour 2 --device gpu e.h5
attempt --k 3 --bandwidth-neighbour 2 --device cuda:77 e.h5
python3 -c "
import h5py
f = h5py.File('e.h5', 'r+')
x = f['embedding'][()]; x[4, 2] = float('nan')
del f['embedding']; f['embedding'] = x"
attempt --k 3 --bandwidth-neighbour 2 e.h5
