// What a file of each kind holds, as one table: the source of the checks made when a file is opened or committed, and
// the same table as in gdds-hdf5(5), which a test compares.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h5/types.h"

namespace gdds::h5 {

constexpr int kSchemaVersion = 1;

struct Field {
  // "/tokens" a dataset, "/vocab@name" an attribute of a group or dataset, "/parameters/*" every dataset below.
  std::string_view path;
  bool required;
  // Datasets: element types that may occur, "uint16|int32"; "text" is UTF-8 in uint8. Attributes: string, integer, real.
  std::string_view type;
  // Dimensions, "n, L": numbers or letters, equal letters being equal numbers in one file; "m+1" one more; "..." any.
  // Empty for attributes.
  std::string_view shape;
  std::string_view meaning;
  std::string_view invariant;  // checked by the reader of the data; empty where type and shape say it all
};

struct Kind {
  std::string_view name;
  std::string_view meaning;
  std::vector<Field> fields;
};

// The fields that every kind has come first in each.
std::span<const Kind> kinds();
const Kind* find_kind(std::string_view name);

// What the checks need to know of a file, so that they run on inputs and on outputs alike.
struct Contents {
  struct Dataset {
    std::string path;
    Type type;
    Shape shape;
  };
  struct Attribute {
    std::string path;  // "/vocab@name"
    std::string type;  // string, integer, real
    std::int64_t integer = 0;
  };
  std::vector<Dataset> datasets;
  std::vector<Attribute> attributes;
  std::vector<std::string> foreign;  // datasets of types that our files do not have
};

// Empty, or the first way in which the contents are not of the kind: "/tokens: expected uint16 or int32, found int64".
std::string check_contents(const Kind& kind, const Contents& contents);

}  // namespace gdds::h5
