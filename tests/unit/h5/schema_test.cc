// The schema checks what it says, the manual says what it checks, and half-width floats round as they should.
#include <cmath>
#include <cstring>
#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "h5/schema.h"
#include "h5/types.h"
#include "support/folder.h"

namespace gdds::h5 {
namespace {

const Kind& tokens() { return *find_kind("tokens"); }

Contents good_tokens() {
  return {{{"/tokens", Type::uint16, {5, 7}}},
          {{"/@gdds_kind", "string"}, {"/@gdds_schema", "integer"}, {"/vocab@name", "string"}, {"/vocab@hash", "string"},
           {"/vocab@size", "integer", 11}},
          {}};
}

TEST(Schema, ChecksTypesShapesAndLetters) {
  Contents c = good_tokens();
  EXPECT_EQ(check_contents(tokens(), c), "");
  c.datasets[0].type = Type::int64;
  EXPECT_EQ(check_contents(tokens(), c), "/tokens: expected uint16 or int32, found int64");
  c = good_tokens();
  c.datasets[0].shape = {5};
  EXPECT_EQ(check_contents(tokens(), c), "/tokens: expected [n, L], found [5]");
  c = good_tokens();
  c.datasets.push_back({"/lengths", Type::int32, {6}});
  EXPECT_EQ(check_contents(tokens(), c), "/lengths: expected [n] with n = 5, found [6]");
  c = good_tokens();
  c.attributes[4].type = "string";
  EXPECT_EQ(check_contents(tokens(), c), "/vocab@size: expected integer, found string");
  c = good_tokens();
  c.foreign = {"/lengths"};
  EXPECT_EQ(check_contents(tokens(), c), "/lengths: expected int32, found a type of another class");
  c = good_tokens();
  c.datasets.push_back({"/mine", Type::float64, {6}});
  EXPECT_EQ(check_contents(tokens(), c), "") << "what the table does not know is the user's own";
  c.datasets.push_back({"/vocab/offsets", Type::int64, {12}});
  EXPECT_EQ(check_contents(tokens(), c), "");
  c.datasets.back().shape = {11};
  EXPECT_EQ(check_contents(tokens(), c), "/vocab/offsets: expected [m+1] with m = 11, found [11]") << "m is /vocab@size";
}

TEST(Schema, HasTheEightKinds) {
  std::string names;
  for (const Kind& kind : kinds()) names += std::string(kind.name) + " ";
  EXPECT_EQ(names, "vocab tokens embedding neighbours process snapshots model samples ");
}

// The rows between .TS and .TE, behind the format and the header; a section a kind.
std::map<std::string, std::vector<std::string>> manual_tables() {
  std::istringstream page(test::file_bytes(std::string(GDDS_SOURCE_DIR) + "/man/gdds-hdf5.5"));
  std::map<std::string, std::vector<std::string>> tables;
  std::string line, section;
  bool table = false, format = false;
  while (std::getline(page, line)) {
    if (line.starts_with(".SS ")) section = line.substr(4);
    if (line == ".TS") { table = true; format = true; continue; }
    if (line == ".TE") table = false;
    if (!table) continue;
    if (format) { format = !line.ends_with("."); continue; }
    if (!line.starts_with("path~")) tables[section].push_back(line);
  }
  return tables;
}

TEST(SchemaTable, EqualsTheManual) {
  const auto manual = manual_tables();
  const auto row = [](const Field& f) {
    return fmt::format("{}~{}~{}~{}~{}~{}", f.path, f.required ? "required" : "optional", f.type, f.shape, f.meaning, f.invariant);
  };
  std::vector<std::string> common;
  for (std::size_t i = 0; i < 4; ++i) common.push_back(row(kinds()[0].fields[i]));
  ASSERT_TRUE(manual.count("Every kind"));
  EXPECT_EQ(manual.at("Every kind"), common);
  for (const Kind& kind : kinds()) {
    std::vector<std::string> rows;
    for (std::size_t i = 4; i < kind.fields.size(); ++i) rows.push_back(row(kind.fields[i]));
    ASSERT_TRUE(manual.count(std::string(kind.name))) << kind.name;
    EXPECT_EQ(manual.at(std::string(kind.name)), rows) << kind.name;
  }
}

TEST(Half, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    if (!nan) {
      ASSERT_EQ(float_to_half(half_to_float(half)), half);
    } else {
      ASSERT_TRUE(std::isnan(half_to_float(half)) && std::isnan(half_to_float(float_to_half(half_to_float(half)))));
    }
    const bool bfloat_nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
    if (!bfloat_nan) {
      ASSERT_EQ(float_to_bfloat(bfloat_to_float(half)), half);
    }
  }
  EXPECT_EQ(half_to_float(0x3c00), 1.0F);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0F);
  EXPECT_EQ(half_to_float(0x0001), std::ldexp(1.0F, -24));
}

// No other half is nearer, and of two as near the even one is taken.
RC_GTEST_PROP(Half, RoundsToNearestEven, ()) {
  const auto low = static_cast<std::uint16_t>(*rc::gen::inRange(0, 0x7bff));
  const double a = half_to_float(low), b = half_to_float(static_cast<std::uint16_t>(low + 1));
  const auto part = *rc::gen::inRange(0, 1025);
  const auto between = static_cast<float>(a + (b - a) * part / 1024);
  const std::uint16_t expected = part < 512 || (part == 512 && low % 2 == 0) ? low : static_cast<std::uint16_t>(low + 1);
  RC_ASSERT(float_to_half(between) == expected);
  RC_ASSERT(float_to_half(-between) == (expected | 0x8000));
}

TEST(Half, LargeNumbersBecomeInfinite) {
  EXPECT_EQ(float_to_half(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_half(-1e30F), 0xfc00);
}

}  // namespace
}  // namespace gdds::h5
