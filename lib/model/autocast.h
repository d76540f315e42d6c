// Mixed precision for a scope: while one of these lives, matrix products and attention run in the given type on that
// device, and what needs the range stays in fp32. The one place that handles LibTorch's thread-local switches.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace gdds::model {

class Autocast {
 public:
  // type float: mixed precision is off in the scope.
  Autocast(c10::DeviceType device, c10::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // The type that is in force for a device, float where there is none.
  static c10::ScalarType current(c10::DeviceType device);

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  c10::ScalarType was_type_;
};

}  // namespace gdds::model
