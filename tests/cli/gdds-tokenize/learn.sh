# The same vocabulary from a file, a pipe, several threads; what it knows; and the tokens of a sentence.
seq -f 'the cat sat on the mat number %.0f and it is what it is' 3000 > in
gdds-tokenize learn -q --size 300 --eos --mask --pad --no-history in > a.h5
cat in | gdds-tokenize learn -q --size 300 --eos --mask --pad --no-history -j 3 | cmp - a.h5
gdds-tokenize info a.h5 | grep -v hash
echo 'the cat is on the mat' | gdds-tokenize --vocab a.h5 --show
gdds-tokenize info --tokens a.h5 | sed -n '33,34p;258p;300,$p'
gdds-tokenize learn --size 5000 in -o b.h5
