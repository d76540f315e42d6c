# A bar on a terminal, erased at the end; nothing in a log of a short run; nothing with -q.
make-sample tokens > in.h5
script -qec "gdds-copy --pause 1 in.h5 -o a.h5" /dev/null > screen
grep -aoE 'gdds-copy: waiting: +[0-9]+% \[#+\.+\] [0-9]+ of 20 ticks, [0-9]+(\.[0-9]+)?/s, 0:0[01] left' screen | head -n 1 | sed -E 's/ *[0-9.]+/ N/g; s/#+ N/bar/'
tail -c 4 screen | od -An -tx1
script -qec "gdds-copy -q --pause 0.5 in.h5 -o a.h5" /dev/null
gdds-copy --pause 0.5 in.h5 -o a.h5
