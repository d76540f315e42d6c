# The neighbours of a word as text.
make-sample embedding > e.h5
gdds-knn --show a --show c --k 2 --bandwidth-neighbour 2 e.h5 | cut -f 1,2,4
