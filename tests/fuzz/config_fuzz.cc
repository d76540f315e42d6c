// Any bytes as a preset: settings, or status 2; what is read can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto settings = gdds::cli::parse_config({reinterpret_cast<const char*>(data), size}, "preset");
    std::string text;
    for (const auto& s : settings) text += s.name + " = " + s.value + "\n";
    const auto again = gdds::cli::parse_config(text, "again");
    if (again.size() != settings.size()) std::abort();
    for (std::size_t i = 0; i < settings.size(); ++i)
      if (again[i].name != settings[i].name || again[i].value != settings[i].value) std::abort();
  } catch (const gdds::Error& error) {
    if (error.status() != gdds::Status::usage) std::abort();
  }
  return 0;
}
