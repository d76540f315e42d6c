// A CUDA driver library that has as many devices, and fails as, the environment says.
#include <stdio.h>
#include <stdlib.h>

static int number(const char* name) {
  const char* text = getenv(name);
  return text != NULL ? atoi(text) : 0;
}
int cuInit(unsigned flags) { (void)flags; return number("FAKE_CUDA_ERROR"); }
int cuDeviceGetCount(int* count) { *count = number("FAKE_CUDA_DEVICES"); return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, (size_t)size, "Fake %d", device); return 0; }
