# Text that the vocabulary cannot say, files that are no vocabularies, ids beyond the vocabulary: one line, status 3.
attempt() { gdds-tokenize "$@" > out || echo "exit $?"; test ! -s out; }
printf 'abc def\nghI' > in
attempt --vocab text8 in
printf 'ab\n\xff' | attempt learn --model characters
echo nonsense > vocab
attempt info vocab
attempt info absent
attempt --vocab . in
make-sample embedding > e.h5
attempt decode e.h5
head -c 500 e.h5 > cut.h5
attempt info cut.h5
printf '{"model": {"type": "Unigram"}}' > u.json
attempt info u.json
attempt --remainder pad in
attempt --begin-token '[CLS]' in
attempt --documents separator --separator '' in
attempt --length 0 in
attempt convert bytes --to tokenizer.json
