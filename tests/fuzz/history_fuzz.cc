// Any bytes as /history: lines, or status 3; a history that is read can be built upon.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "h5/history.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto lines = gdds::h5::parse_history(text, "f");
    const gdds::Invocation invocation{"gdds-knn", "1", {{"", "x.h5"}}, {}};
    const std::string next = gdds::h5::make_history(invocation, {{"x.h5", "d", text}});
    if (gdds::h5::parse_history(next, "g").empty()) std::abort();
  } catch (const gdds::Error& error) {
    if (error.status() != gdds::Status::rejected) std::abort();
  }
  return 0;
}
