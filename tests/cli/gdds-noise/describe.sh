# What there is to know about each process.
make-sample tokens > t.h5
make-sample embedding > e.h5
gdds-knn -q --k 3 --bandwidth-neighbour 2 e.h5 -o n.h5
seq 0.5 0.1 1.5 > rates
printf '%d\n' 0 0 0 1 1 1 2 2 2 2 2 > clusters
gdds-noise --describe t.h5
top() { echo; gdds-noise --describe "$@" | sed '/^$/,$d; /^vocabulary/d; /^what/d; /^digest/d'; }
top --process uniform --schedule cosine t.h5
top --process hybrid t.h5
top --process sik-knn --neighbours n.h5 --kernel-perplexity 2
top --process sik-dense --neighbours n.h5 --embedding e.h5 --epsilon-end 0.1 t.h5
top --process hierarchical --clusters clusters t.h5
top --process mask-rates --mask-rates rates t.h5
