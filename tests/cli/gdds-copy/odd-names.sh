# File names with blanks, line breaks and bytes that are not UTF-8 stay one line in errors and work as files.
name=$'a b\n\xff.h5'
gdds-copy "$name" || :
make-sample tokens -o "$name"
gdds-copy -- "$name" > out.h5
rm "$name"
gdds-copy out.h5 | cmp - <(gdds-copy < out.h5)
