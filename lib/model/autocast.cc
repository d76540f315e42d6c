// See autocast.h.
#include "model/autocast.h"

#include <ATen/autocast_mode.h>

namespace gdds::model {

Autocast::Autocast(c10::DeviceType device, c10::ScalarType type)
    : device_(device), was_enabled_(at::autocast::is_autocast_enabled(device)), was_type_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device, type != at::kFloat);
  if (type != at::kFloat) at::autocast::set_autocast_dtype(device, type);
}

Autocast::~Autocast() {
  // The casts of the weights are kept until the outermost scope ends; later the weights may have changed.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, was_type_);
}

c10::ScalarType Autocast::current(c10::DeviceType device) {
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device) : at::kFloat;
}

}  // namespace gdds::model
