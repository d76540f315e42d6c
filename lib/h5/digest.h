// The digest of a file's contents: XXH3-128 over paths, types, shapes, values and attributes in the order of their names,
// without /history and the digest itself. It does not change with compression, chunks or the way the file travelled.
#pragma once

#include <map>
#include <string>

#include "h5/input.h"
#include "h5/types.h"

namespace gdds::h5 {

struct DatasetDigest {
  Type type;
  Shape shape;
  std::string values;  // XXH3-128 of the little-endian elements, row-major
};

std::string contents_digest(const std::map<std::string, DatasetDigest>& datasets,
                            const std::map<std::string, Attribute>& attributes);

}  // namespace gdds::h5
