# How a text decays, with marks; from a file too; and no text at all.
make-sample tokens > t.h5
make-sample embedding > e.h5
gdds-knn -q --k 3 --bandwidth-neighbour 2 e.h5 -o n.h5
gdds-noise --process sik-knn --neighbours n.h5 --show abcdefghi t.h5
printf 'abcdefghi\n' > text
gdds-noise --process sik-knn --neighbours n.h5 --show text t.h5 > again
gdds-noise --process sik-knn --neighbours n.h5 --show abcdefghi - < t.h5 | cmp - again
gdds-noise --process sik-knn --neighbours n.h5 --show abcdefghi --seed 2 t.h5 | cmp -s - again && echo "--seed does nothing"
gdds-noise --show abc e.h5
printf '%d\n' 0 0 0 1 1 1 2 2 2 2 2 > clusters
gdds-noise --process hierarchical --clusters clusters --show abc t.h5
# Words stay apart.
printf 'the cat sat on the mat and the hat %.0s' {1..50} > corpus
gdds-tokenize learn -q --size 264 --mask corpus -o v.h5
gdds-noise --show "the cat sat" v.h5 | tail -n 4
script -qec "gdds-noise --show abc t.h5" /dev/null | tr -d '\r' | cat -v
