# What cannot be trained on, each in one line with its status.
sample tokens tokens.h5 --sequences 8
sample neighbours neighbours.h5
fails() { local status=0; gdds-train -q -j 1 --size tiny --steps 1 "$@" >out 2>err || status=$?; echo "$status $(wc -l <err)"; cat err >&2; }
fails missing.h5 -o m.h5
fails neighbours.h5 -o m.h5
fails tokens.h5 -o -
fails tokens.h5 -o no/m.h5
for _ in {1..11}; do echo 0; done >clusters # of each of the sample's tokens
fails --objective campbell --process hierarchical --clusters clusters tokens.h5 -o m.h5
fails --model-length 4 tokens.h5 -o m.h5
fails --process sik-knn tokens.h5 -o m.h5
fails --resume missing.h5 tokens.h5 -o m.h5
fails --resume tokens.h5 tokens.h5 -o m.h5
gdds-train -q -j 1 --size tiny --steps 1 tokens.h5 -o other.h5
fails --model-dim 64 --resume other.h5 tokens.h5 -o m.h5
fails --objective path --resume other.h5 tokens.h5 -o m.h5
fails --steps 2 --process uniform --resume other.h5 tokens.h5 -o m.h5
echo "letters of another vocabulary" | gdds-tokenize learn -q --size 260 --min-count 1 --mask -o v.h5
echo "letters of another vocabulary" | gdds-tokenize -q --vocab v.h5 --length 4 -o elsewhere.h5
gdds-noise process -q --process uniform elsewhere.h5 -o elsewhere-uniform.h5
fails --process elsewhere-uniform.h5 tokens.h5 -o m.h5
fails --validation elsewhere.h5 tokens.h5 -o m.h5
fails --resume other.h5 elsewhere.h5 -o m.h5
fails --validation neighbours.h5 tokens.h5 -o m.h5
fails --model-heads 7 tokens.h5 -o m.h5
fails --batch-size 0 tokens.h5 -o m.h5
gdds-noise -q --process uniform --batch-size 4 --batches 2 tokens.h5 -o stream.h5
gdds-noise process -q --process uniform tokens.h5 -o uniform.h5
gdds-noise process -q tokens.h5 -o absorb.h5
fails --batch-size 4 stream.h5 -o m.h5
fails --batch-size 4 --process absorb.h5 stream.h5 -o m.h5
fails --batch-size 8 --process uniform.h5 stream.h5 -o m.h5
fails --process uniform.h5 - -o m.h5 </dev/null
fails --batch-size 4 --objective campbell --process uniform.h5 stream.h5 -o m.h5
gdds-noise -q --process uniform --paths --batch-size 4 --batches 2 tokens.h5 -o short-paths.h5
fails --batch-size 4 --objective campbell --process uniform.h5 short-paths.h5 -o m.h5
fails --objective path --t-min 0 tokens.h5 -o m.h5
gdds-noise -q --process uniform --time 0 --batch-size 4 --batches 1 tokens.h5 -o at-zero.h5
fails --batch-size 4 --objective path --process uniform.h5 at-zero.h5 -o m.h5
sample tokens before.h5 --sequences 9
cp tokens.h5 copy.h5
fails --log-file ./tokens.h5 tokens.h5 -o m.h5
fails --validation tokens.h5 --log-file tokens.h5 before.h5 -o m.h5
fails --log-file m.h5 tokens.h5 -o m.h5
fails --log-file - tokens.h5 -o m.h5
cmp tokens.h5 copy.h5
fails --resume other.h5 tokens.h5 -o m.h5
fails --steps 2 --resume other.h5 before.h5 -o m.h5
fails tokens.h5 -o ""
(ulimit -v 6000000; fails --model-dim 65536 --model-heads 64 tokens.h5 -o m.h5)
ls ./*.h5
