// HDF5 1.10 loses the buffer of a chunk whose checksum is wrong. Included by the tests of damaged files alone, so that
// leaks of our own handles elsewhere are still seen.
#pragma once

extern "C" __attribute__((used, visibility("default"))) const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }
