# Any bytes come back exactly: UTF-8 or not, one thread or three, bytes or a learned vocabulary, with documents or without.
head -c 300000 /dev/urandom > noise
(seq 20000; printf 'caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87\n'; cat noise) > in
gdds-tokenize learn -q --size 600 in -o v.h5
for vocab in bytes v.h5; do
  for threads in 1 3; do
    gdds-tokenize -q --vocab $vocab --length 64 --remainder keep -j $threads in | gdds-tokenize decode --separator '' | cmp - in
  done
done
