// See digest.h.
#include "h5/digest.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/number.h"

namespace gdds::h5 {
namespace {

std::string attribute_text(const Attribute& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return "string " + *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("integer {}", *number);
  return "real " + number_text(std::get<double>(value));
}

}  // namespace

std::string contents_digest(const std::map<std::string, DatasetDigest>& datasets,
                            const std::map<std::string, Attribute>& attributes) {
  Hash hash;
  for (const auto& [path, dataset] : datasets) {
    if (path == "/history") continue;
    hash.update_field(path);
    hash.update_field(fmt::format("{} {}", type_name(dataset.type), shape_text(dataset.shape)));
    hash.update_field(dataset.values);
  }
  for (const auto& [path, value] : attributes) {
    if (path == "/@gdds_digest") continue;
    hash.update_field(path);
    hash.update_field(attribute_text(value));
  }
  return hash.hex();
}

}  // namespace gdds::h5
