// Which device to compute on, found out without risk: the probe loads the driver by hand and asks it, so a machine
// without a GPU, without a driver or with a broken one gives a reason, never an abort (as FAISS and LibTorch would).
#pragma once

#include <string>
#include <vector>

#include "base/options.h"

namespace gdds {

struct CudaProbe {
  std::vector<std::string> devices;  // names; empty where CUDA cannot be used
  std::string reason;                // why there are none: "no CUDA driver (libcuda.so.1)"
};

// Asks the driver library of that name. The tests name a library of their own.
CudaProbe probe_cuda(const std::string& driver_library = "libcuda.so.1");

struct Device {
  bool cuda = false;
  int index = 0;
  bool operator==(const Device&) const = default;
};

// "auto", "cpu", "cuda" or "cuda:N". A bad word is status 2; a device that is not there is status 1 with the reason.
Device choose_device(const std::string& text, const CudaProbe& probe);

struct DeviceOption {
  std::string text = "auto";
  void add_to(Options& options) {
    options.option("device", text, "where to compute; auto takes a GPU where there is one")
        .placeholder("auto|cpu|cuda[:N]");
  }
  Device choose() const { return choose_device(text, text == "cpu" ? CudaProbe{} : probe_cuda()); }
};

}  // namespace gdds
