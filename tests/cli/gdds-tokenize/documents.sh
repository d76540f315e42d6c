# What a document is, by the line ends that the end-of-text token makes of it.
gdds-tokenize convert bytes --eos -o v.h5
printf 'one\ntwo\n\nthree\n' > t
printf '{"text":"one"}\n{"body":"x","text":"tw\\u00f6"}\n' > j
show() { gdds-tokenize -q --vocab v.h5 --length 1 "$@" | gdds-tokenize decode --separator '' | sed 's/<|endoftext|>/|/g; s/$/$/'; echo; }
show t
show --documents line t
show --documents paragraph t t
show --documents separator --separator o t
show --documents jsonl j
show --documents line --no-eos t
