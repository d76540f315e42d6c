// See device.h. The four driver calls are declared here, since the toolkit's cuda.h need not be installed.
#include "base/device.h"

#include <charconv>
#include <memory>

#include <dlfcn.h>

#include "base/error.h"

namespace gdds {
namespace {

using CuInit = int (*)(unsigned);
using CuDeviceGetCount = int (*)(int*);
using CuDeviceGet = int (*)(int*, int);
using CuDeviceGetName = int (*)(char*, int, int);

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

CudaProbe probe_cuda(const std::string& driver_library) {
  void* const library = dlopen(driver_library.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded: drivers dislike dlclose
  if (library == nullptr) return {{}, fmt::format("no CUDA driver ({})", driver_library)};
  const auto init = find<CuInit>(library, "cuInit");
  const auto count_of = find<CuDeviceGetCount>(library, "cuDeviceGetCount");
  const auto device_of = find<CuDeviceGet>(library, "cuDeviceGet");
  const auto name_of = find<CuDeviceGetName>(library, "cuDeviceGetName");
  if (!init || !count_of || !device_of || !name_of)
    return {{}, fmt::format("{} is not a CUDA driver", driver_library)};
  if (const int error = init(0); error != 0) return {{}, fmt::format("the CUDA driver does not start (error {})", error)};
  int count = 0;
  if (const int error = count_of(&count); error != 0)
    return {{}, fmt::format("the CUDA driver does not list its devices (error {})", error)};
  CudaProbe probe;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[256] = "";
    if (device_of(&device, i) != 0 || name_of(name, sizeof name, device) != 0)
      return {{}, fmt::format("CUDA device {} does not answer", i)};
    probe.devices.emplace_back(name);
  }
  if (probe.devices.empty()) probe.reason = "the CUDA driver has no device";
  return probe;
}

Device choose_device(const std::string& text, const CudaProbe& probe) {
  if (text == "cpu") return {};
  if (text == "auto") return {!probe.devices.empty(), 0};
  int index = 0;
  if (text != "cuda") {
    const char* const end = text.data() + text.size();
    const bool prefixed = text.rfind("cuda:", 0) == 0;
    const auto [stop, error] = std::from_chars(text.data() + (prefixed ? 5 : 0), end, index);
    if (!prefixed || error != std::errc{} || stop != end || index < 0)
      bad_usage("--device: expected auto, cpu, cuda or cuda:N, found '{}'", text);
  }
  if (probe.devices.empty()) fail("--device {}: {}", text, probe.reason);
  if (index >= static_cast<int>(probe.devices.size()))
    fail("--device {}: there are {} CUDA devices, numbered from 0", text, probe.devices.size());
  return {true, index};
}

}  // namespace gdds
