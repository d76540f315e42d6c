// Files: what is written is what is read, the same contents give the same bytes, nothing half-written is left, and the
// wrong file is refused with the right words.
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "h5/input.h"
#include "h5/output.h"
#include "h5/schema.h"
#include "support/folder.h"
#include "support/sample.h"

namespace gdds::h5 {
namespace {

using test::error_of;
using test::file_bytes;
using test::Folder;
using test::write_bytes;

OutputOptions to(const std::string& path, int compress = 0) { return {path, compress, false}; }

void make(const std::string& path, std::string_view kind, int compress = 0, std::uint64_t n = 5) {
  Output output(to(path, compress), kind, test::sample_invocation(), {});
  test::write_sample(output, kind, n);
  output.commit();
}

void name_vocabulary(Output& output, std::int64_t size) {
  output.attribute("/vocab@name", std::string("test"));
  output.attribute("/vocab@hash", std::string(32, '0'));
  output.attribute("/vocab@size", size);
}

class EveryKind : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, EveryKind, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Kind& kind : kinds()) names.emplace_back(kind.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryKind, CopiesExactlyAndRerunsToTheSameBytes) {
  const Folder folder;
  make(folder.file("a.h5"), GetParam());
  make(folder.file("b.h5"), GetParam());
  EXPECT_EQ(file_bytes(folder.file("a.h5")), file_bytes(folder.file("b.h5")));
  const Input a(folder.file("a.h5"), GetParam());
  EXPECT_EQ(a.kind(), GetParam());
  EXPECT_EQ(a.digest(), a.computed_digest());
  Output output(to(folder.file("c.h5"), 6), GetParam(), {"gdds-copy", "1", {}, {}}, {a.source()});
  copy_contents(a, output);
  output.commit();
  const Input c(folder.file("c.h5"), GetParam());
  EXPECT_EQ(c.digest(), a.digest()) << "compression and history are not contents";
  EXPECT_EQ(c.digest(), c.computed_digest());
  EXPECT_EQ(parse_history(c.history(), "c").size(), 2U);
}

TEST_P(EveryKind, RefusesEveryOtherKind) {
  const Folder folder;
  make(folder.file("a.h5"), GetParam());
  for (const Kind& kind : kinds()) {
    if (kind.name == GetParam()) continue;
    EXPECT_EQ(error_of([&] { Input(folder.file("a.h5"), kind.name); }),
              fmt::format("3 {}: expected kind '{}', found '{}'", folder.file("a.h5"), kind.name, GetParam()));
  }
}

TEST_P(EveryKind, MissesEachRequiredField) {
  // Leave out one required field after the other: the file is refused when it is read and when we would write it.
  const Kind& kind = *find_kind(GetParam());
  const Folder folder;
  make(folder.file("a.h5"), GetParam());
  const Contents whole = Input(folder.file("a.h5"), "").contents();
  EXPECT_EQ(check_contents(kind, whole), "");
  for (const Field& field : kind.fields) {
    Contents less = whole;
    const auto prefix = field.path.back() == '*' ? field.path.substr(0, field.path.size() - 1) : field.path;
    std::erase_if(less.datasets, [&](const auto& d) { return d.path.starts_with(prefix) && field.path.find('@') == field.path.npos; });
    std::erase_if(less.attributes, [&](const auto& a) { return a.path == field.path; });
    EXPECT_EQ(check_contents(kind, less), field.required ? fmt::format("{} is missing", field.path) : "") << field.path;
  }
}

TEST(File, ReadsWhatItWrote) {
  EXPECT_TRUE(rc::check("shapes, types and ways of appending", [] {
    const Folder folder;
    const auto n = *rc::gen::inRange<std::uint64_t>(0, 300);
    const auto width = *rc::gen::inRange<std::uint64_t>(1, 40);
    const auto step = *rc::gen::inRange<std::uint64_t>(1, 70);
    const auto compress = *rc::gen::element(0, 1, 9);
    const bool unknown = *rc::gen::arbitrary<bool>();
    std::vector<std::uint16_t> values(n * width);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i * 40503U);
    {
      Output output(to(folder.file("t.h5"), compress), "tokens", test::sample_invocation(), {});
      name_vocabulary(output, 65536);
      Writer writer = output.dataset("/tokens", {unknown ? kUnknown : n, width}, Type::uint16);
      for (std::uint64_t at = 0; at < n; at += step)
        writer.append(std::span<const std::uint16_t>(values).subspan(at * width, std::min(step, n - at) * width));
      output.commit();
    }
    const Input input(folder.file("t.h5"), "tokens");
    RC_ASSERT(input.shape("/tokens") == (Shape{n, width}));
    RC_ASSERT(input.read<std::uint16_t>("/tokens") == values);
    const auto wide = input.read<std::int32_t>("/tokens");
    RC_ASSERT(std::equal(wide.begin(), wide.end(), values.begin(), values.end()));
    if (n > 2) {
      std::vector<std::int32_t> rows(2 * width);
      input.read_rows<std::int32_t>("/tokens", n - 2, 2, rows);
      RC_ASSERT(std::equal(rows.begin(), rows.end(), wide.end() - static_cast<std::ptrdiff_t>(2 * width)));
    }
  }));
}

TEST(File, AppendedInAnyPiecesIsTheSameFile) {
  const Folder folder;
  std::vector<std::int32_t> values(3000 * 500);  // several chunks
  std::iota(values.begin(), values.end(), -7);
  const auto write_in = [&](const std::string& path, std::uint64_t step) {
    Output output(to(path), "tokens", test::sample_invocation(), {});
    name_vocabulary(output, 11);
    Writer writer = output.dataset("/tokens", {3000, 500}, Type::int32);
    for (std::uint64_t at = 0; at < 3000; at += step)
      writer.append(std::span<const std::int32_t>(values).subspan(at * 500, std::min<std::uint64_t>(step, 3000 - at) * 500));
    output.commit();
  };
  write_in(folder.file("whole.h5"), 3000);
  for (const std::uint64_t step : {1, 7, 1000}) {
    write_in(folder.file("parts.h5"), step);
    EXPECT_TRUE(file_bytes(folder.file("whole.h5")) == file_bytes(folder.file("parts.h5"))) << step;
  }
}

TEST(File, HalvesAreWidened) {
  const Folder folder;
  std::vector<std::uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), 0);
  for (const Type type : {Type::float16, Type::bfloat16}) {
    Output output(to(folder.file("h.h5")), "model", test::sample_invocation(), {});
    test::write_sample(output, "model");
    output.dataset("/parameters/half", {256, 256}, type).append_stored(bits.data(), bits.size());
    output.commit();
    const Input input(folder.file("h.h5"), "model");
    const Matrix m = input.matrix("/parameters/half");
    ASSERT_EQ(m.values.size(), bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float expected = type == Type::float16 ? half_to_float(bits[i]) : bfloat_to_float(bits[i]);
      ASSERT_TRUE(m.values[i] == expected || (std::isnan(m.values[i]) && std::isnan(expected))) << i;
    }
  }
}

TEST(File, HoldsAThousandDatasetsInAGroup) {
  const Folder folder;
  {
    Output output(to(folder.file("m.h5")), "model", test::sample_invocation(), {});
    test::write_sample(output, "model");
    for (int i = 0; i < 1000; ++i) output.write("/parameters/p" + std::to_string(i), std::vector<float>{static_cast<float>(i)});
    output.commit();
  }
  const Input input(folder.file("m.h5"), "model");
  for (int i = 0; i < 1000; i += 99) EXPECT_EQ(input.read<float>("/parameters/p" + std::to_string(i)), std::vector<float>{static_cast<float>(i)});
  EXPECT_EQ(input.computed_digest(), input.digest());
}

TEST(File, NarrowingIsRefused) {
  const Folder folder;
  make(folder.file("s.h5"), "snapshots");
  const Input input(folder.file("s.h5"), "snapshots");
  EXPECT_EQ(error_of([&] { input.read<float>("/time"); }),
            "3 " + folder.file("s.h5") + ": /time: expected float32, found float64");
  EXPECT_EQ(error_of([&] { input.read<std::int32_t>("/time"); }),
            "3 " + folder.file("s.h5") + ": /time: expected int32, found float64");
  EXPECT_EQ(error_of([&] { input.read<std::int32_t>("/nothing"); }), "3 " + folder.file("s.h5") + ": /nothing is missing");
}

TEST(File, WithoutCommitNothingIsLeft) {
  const Folder folder;
  {
    Output output(to(folder.file("x.h5")), "tokens", test::sample_invocation(), {});
    test::write_sample(output, "tokens");
    EXPECT_EQ(folder.count(), 1U) << "a temporary file beside the destination";
  }
  EXPECT_EQ(folder.count(), 0U);
  write_bytes(folder.file("x.h5"), "precious");
  { const Output output(to(folder.file("x.h5")), "tokens", test::sample_invocation(), {}); }
  EXPECT_EQ(file_bytes(folder.file("x.h5")), "precious");
}

TEST(File, IncompleteOutputIsOurFault) {
  const Folder folder;
  Output output(to(folder.file("x.h5")), "tokens", test::sample_invocation(), {});
  EXPECT_THROW(output.commit(), std::logic_error);
}

TEST(File, SaysWhatIsWrong) {
  const Folder folder;
  const std::string x = folder.file("x.h5");
  const auto opened = [&] { return error_of([&] { Input(x, "tokens"); }); };
  EXPECT_EQ(opened(), "1 " + x + ": cannot open: No such file or directory");
  write_bytes(x, "");
  EXPECT_EQ(opened(), "3 " + x + ": empty");
  write_bytes(x, "hello, world");
  EXPECT_EQ(opened(), "3 " + x + ": not an HDF5 file");
  make(x, "tokens");
  const std::string bytes = file_bytes(x);
  write_bytes(x, bytes.substr(0, 40));
  EXPECT_EQ(opened(), "3 " + x + ": cut off inside its first block");
  write_bytes(x, bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(opened(), fmt::format("3 {}: cut off: expected {} bytes, found {}", x, bytes.size(), bytes.size() - 1));
  write_bytes(x, bytes + bytes);
  EXPECT_EQ(opened(), fmt::format("3 {}: {} bytes follow its end; a stream of batches?", x, bytes.size()));
  EXPECT_EQ(error_of([&] { Input(folder.path, "tokens"); }), "1 " + folder.path.string() + ": cannot open: Is a directory");
}

TEST(File, OutputGoesNowhereBeforeTheWork) {
  const Folder folder;
  const auto opened = [](const std::string& path) {
    return error_of([&] { Output(to(path), "tokens", test::sample_invocation(), {}); });
  };
  EXPECT_EQ(opened(folder.file("no/x.h5")), fmt::format("1 {}: cannot create a file in {}: No such file or directory",
                                                        folder.file("no/x.h5"), folder.file("no")));
  EXPECT_EQ(opened(folder.path), "1 " + folder.path.string() + ": cannot write: Is a directory");
}

TEST(File, ALinkStaysALink) {
  const Folder folder;
  make(folder.file("real.h5"), "tokens");
  std::filesystem::create_symlink("real.h5", folder.file("link.h5"));
  make(folder.file("link.h5"), "vocab");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.h5")));
  EXPECT_EQ(Input(folder.file("real.h5"), "").kind(), "vocab");
}

TEST(File, VocabulariesMustAgree) {
  const Folder folder;
  make(folder.file("a.h5"), "tokens");
  {
    Output output(to(folder.file("b.h5")), "tokens", test::sample_invocation(), {});
    test::write_sample(output, "tokens");
    output.attribute("/vocab@hash", std::string("feedfacefeedfacefeedfacefeedface"));
    output.attribute("/vocab@name", std::string("other"));
    output.commit();
  }
  const Input a(folder.file("a.h5"), ""), b(folder.file("b.h5"), "");
  check_same_vocabulary(a, a);
  const std::string error = error_of([&] { check_same_vocabulary(a, b); });
  EXPECT_NE(error.find("its vocabulary is 'other' (11 tokens, feedface), but that of"), std::string::npos) << error;
}

long resident_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

TEST(File, LargeDatasetsTakeLittleMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps freed memory; the release build measures it";
#endif
  const Folder folder;
  constexpr std::uint64_t kRows = 64 * 1024, kWidth = 2048;  // 256 MiB
  const long before = resident_megabytes();
  {
    Output output(to(folder.file("big.h5")), "tokens", test::sample_invocation(), {});
    name_vocabulary(output, 65536);
    Writer writer = output.dataset("/tokens", {kUnknown, kWidth}, Type::uint16);
    std::vector<std::uint16_t> row(kWidth);
    for (std::uint64_t i = 0; i < kRows; ++i) {
      std::fill(row.begin(), row.end(), static_cast<std::uint16_t>(i));
      writer.append(std::span<const std::uint16_t>(row));
    }
    output.commit();
  }
  const Input input(folder.file("big.h5"), "tokens");
  std::vector<std::uint16_t> rows(100 * kWidth);
  for (std::uint64_t at = 0; at + 100 <= kRows; at += 100) {
    input.read_rows<std::uint16_t>("/tokens", at, 100, rows);
    ASSERT_EQ(rows[57 * kWidth + 3], static_cast<std::uint16_t>(at + 57));
  }
  EXPECT_EQ(input.computed_digest(), input.digest());
  EXPECT_LT(resident_megabytes() - before, 64);
}

TEST(File, HugeClaimsAreNotBelieved) {
  // Chunks never written take no room, so a small file may claim any size; reading it must not take the machine.
  const Folder folder;
  make(folder.file("x.h5"), "tokens");
  const int status = std::system(("/usr/bin/python3 -c \"import h5py; f = h5py.File('" + folder.file("x.h5") +
                                  "', 'r+'); del f['tokens']; f.create_dataset('tokens', shape=(1 << 40, 1 << 20), dtype='u2', "
                                  "chunks=(1, 1024)); del f['lengths']\"").c_str());
  if (status != 0) GTEST_SKIP() << "python3 with h5py is not here to make the file";
  const Input input(folder.file("x.h5"), "tokens");
  const std::string error = error_of([&] { input.read<std::uint16_t>("/tokens"); });
  EXPECT_NE(error.find("/tokens [1099511627776, 1048576] is more than a file of"), std::string::npos) << error;
}

}  // namespace
}  // namespace gdds::h5
