# Command lines that cannot be meant: one line each, status 2, and nothing is written.
attempt() { gdds-noise "$@" > out || echo "exit $?"; test ! -s out; }
make-sample tokens > t.h5
make-sample embedding > e.h5
gdds-knn -q --k 3 --bandwidth-neighbour 2 e.h5 -o n.h5
gdds-noise process -q --process uniform t.h5 -o u.h5
attempt --process brownian t.h5
attempt process --process brownian
attempt --describe --process brownian
attempt --process sik-knn t.h5
attempt process --process sik-knn
attempt --process sik-dense --neighbours n.h5 t.h5
attempt --process hierarchical t.h5
attempt --process hierarchical --clusters 3 t.h5
attempt --process mask-rates t.h5
attempt --neighbours n.h5 t.h5
attempt --process sik-knn --neighbours n.h5 --embedding e.h5 t.h5
attempt --process hierarchical --clusters clusters --embedding e.h5 t.h5
attempt --process uniform --clusters 3 t.h5
attempt --process absorb --mask-rates rates t.h5
attempt --process u.h5 --neighbours n.h5 t.h5
attempt --process u.h5 --schedule cosine t.h5
attempt --process u.h5 --epsilon 0.1 t.h5
attempt --process hierarchical --clusters 0 --embedding e.h5 t.h5
attempt --process hierarchical --clusters 12 --embedding e.h5 t.h5
attempt --process hierarchical --clusters 99999999999999999999 --embedding e.h5 t.h5
attempt --process sik-knn --neighbours n.h5 --kernel-perplexity 3.5 t.h5
attempt --process sik-knn --neighbours n.h5 --kernel-perplexity 0.5 t.h5
attempt --process sik-knn --neighbours n.h5 --reset-floor 0 t.h5
attempt --process sik-knn --neighbours n.h5 --reset-floor 0.5 --reset-ceiling 0.2 t.h5
attempt --schedule geometric --sigma-min 2 --sigma-max 1 t.h5
attempt --schedule sigmoid t.h5
attempt --schedule-eps 0.5 t.h5
attempt --time 2 t.h5
attempt --time -0.5 t.h5
attempt --time nan t.h5
attempt --t-min inf t.h5
attempt --epsilon nan t.h5
attempt --cluster-rate -nan t.h5
attempt --strata 0 t.h5
attempt --times sometimes t.h5
attempt --batches 3 t.h5
attempt --batch-size -1 t.h5
attempt --show xyz t.h5
attempt --show abc --describe t.h5
