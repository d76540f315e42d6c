# --help and -h say the same on standard output, and nothing else happens.
tool --help > long
tool -h > short
cmp long short
grep -q '^Usage: ' long
grep -q -- '--version' long
awk 'length($0) > 100 { print "too long: " $0 }' long
