# Parts: disjoint, whole, marked in the file; those that need a size refuse a pipe.
seq 1000 > in
for how in fraction:0.2:0.1 documents:200:100; do
  for part in train valid test; do
    gdds-tokenize -q --length 1 --documents line --split $how --part $part in > $part.h5
    gdds-tokenize decode --separator '' $part.h5 > $part
    h5dump -a /tokens/split $part.h5 | grep -o '"[a-z]*" *$\|"[a-z]*"' | tail -n 1
  done
  cat train valid test | wc -c
done
gdds-tokenize -q --length 1 --split text8 --part valid in | gdds-tokenize decode --separator '' | wc -c
cat in | gdds-tokenize --split text8
