// Batch streams: files back to back, one at a time, from files and pipes; what breaks is named by its batch.
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "h5/input.h"
#include "h5/output.h"
#include "h5/superblock.h"
#include "support/folder.h"
#include "support/sample.h"

namespace gdds::h5 {
namespace {

using test::error_of;
using test::file_bytes;
using test::Folder;
using test::write_bytes;

void make_stream(const std::string& path, std::string_view kind, int batches, std::uint64_t n = 5) {
  StreamWriter stream({path, 0, false}, kind, test::sample_invocation(), {});
  for (int i = 0; i < batches; ++i) {
    Output batch = stream.batch();
    test::write_sample(batch, kind, n, static_cast<std::uint64_t>(i));
    batch.commit();
  }
  stream.finish();
}

// A named pipe and a thread that writes these bytes into it, in pieces.
struct Feeder {
  std::string path;
  std::thread writer;
  Feeder(std::string name, const std::string& bytes, std::size_t piece) : path(std::move(name)) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    writer = std::thread([this, &bytes, piece] {
      const int out = open(path.c_str(), O_WRONLY);
      for (std::size_t at = 0; at < bytes.size(); at += piece)
        EXPECT_GT(write(out, bytes.data() + at, std::min(piece, bytes.size() - at)), 0);
      close(out);
    });
  }
  ~Feeder() { writer.join(); }
};

// Reads to the end and counts.
int read_all(const std::string& path, std::string_view kind) {
  StreamReader reader(path, kind);
  int count = 0;
  while (const auto batch = reader.next()) {
    batch->computed_digest();
    ++count;
  }
  return count;
}

TEST(Stream, OfOneBatchIsAnOrdinaryFile) {
  const Folder folder;
  make_stream(folder.file("one.h5"), "snapshots", 1);
  Output output({folder.file("file.h5"), 0, false}, "snapshots", test::sample_invocation(), {});
  test::write_sample(output, "snapshots", 5, 0);
  output.commit();
  EXPECT_TRUE(file_bytes(folder.file("one.h5")) == file_bytes(folder.file("file.h5"))) << "the same bytes, built in memory or on disk";
  EXPECT_EQ(Input(folder.file("one.h5"), "snapshots").kind(), "snapshots");
}

TEST(Stream, ComesBackBatchByBatch) {
  const Folder folder;
  make_stream(folder.file("s.h5"), "snapshots", 7);
  StreamReader reader(folder.file("s.h5"), "snapshots");
  for (std::uint64_t i = 0; i < 7; ++i) {
    const auto batch = reader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->read<std::int32_t>("/x0")[0], static_cast<std::int32_t>((3 + i) % 11));
    EXPECT_EQ(batch->name(), folder.file("s.h5") + ": batch " + std::to_string(i + 1));
  }
  EXPECT_FALSE(reader.next());
}

TEST(Stream, BatchesOpenTogetherAreDifferent) {
  const Folder folder;
  make_stream(folder.file("s.h5"), "snapshots", 3);
  StreamReader reader(folder.file("s.h5"), "snapshots");
  const auto a = reader.next(), b = reader.next(), c = reader.next();
  EXPECT_NE(a->computed_digest(), b->computed_digest());
  EXPECT_NE(b->computed_digest(), c->computed_digest());
  EXPECT_EQ(c->computed_digest(), c->digest());
  EXPECT_EQ(a->computed_digest(), a->digest());
  StreamWriter writer({folder.file("two.h5"), 0, false}, "snapshots", test::sample_invocation(), {});
  Output first = writer.batch(), second = writer.batch();
  copy_contents(*a, first);
  copy_contents(*b, second);
  first.commit();
  second.commit();
  writer.finish();
  StreamReader again(folder.file("two.h5"), "snapshots");
  EXPECT_EQ(again.next()->digest(), a->digest());
  EXPECT_EQ(again.next()->digest(), b->digest());
}

TEST(Stream, ThroughAPipeInSmallPieces) {
  const Folder folder;
  make_stream(folder.file("s.h5"), "snapshots", 3);
  const std::string bytes = file_bytes(folder.file("s.h5"));
  const Feeder feeder(folder.file("fifo"), bytes, 1000);
  EXPECT_EQ(read_all(feeder.path, "snapshots"), 3);
}

TEST(Stream, ABatchBeyondMemoryIsSpooled) {
  const Folder folder;
  make_stream(folder.file("s.h5"), "snapshots", 2, 1'500'000);  // 70 MB each
  ASSERT_GT(std::filesystem::file_size(folder.file("s.h5")), std::size_t{130} << 20);
  EXPECT_EQ(read_all(folder.file("s.h5"), "snapshots"), 2);
}

TEST(Stream, NamesTheBatchThatBreaks) {
  const Folder folder;
  const std::string s = folder.file("s.h5");
  make_stream(folder.file("one.h5"), "snapshots", 1);
  make_stream(folder.file("other.h5"), "tokens", 1);
  const std::string one = file_bytes(folder.file("one.h5")), other = file_bytes(folder.file("other.h5"));
  const auto read = [&](const std::string& bytes) {
    write_bytes(s, bytes);
    return error_of([&] { read_all(s, "snapshots"); });
  };
  EXPECT_EQ(read(one + one), "no error");
  EXPECT_EQ(read(""), "3 " + s + ": empty; expected at least one batch of kind 'snapshots'");
  EXPECT_EQ(read(one + one.substr(0, one.size() - 10)),
            fmt::format("3 {}: batch 2: cut off: expected {} bytes, found {}", s, one.size(), one.size() - 10));
  EXPECT_EQ(read(one + one.substr(0, 30)), "3 " + s + ": batch 2: cut off inside its first block");
  EXPECT_EQ(read(one + "\n" + one), "3 " + s + ": batch 2: not an HDF5 file");
  EXPECT_EQ(read(one + one + std::string(100, '\0')), "3 " + s + ": batch 3: not an HDF5 file");
  EXPECT_EQ(read(one + other + one), "3 " + s + ": batch 2: expected kind 'snapshots', found 'tokens'");
  std::string flipped = one;
  flipped[30] = static_cast<char>(flipped[30] ^ 4);  // its length
  EXPECT_EQ(read(one + flipped), "3 " + s + ": batch 2: damaged: the checksum of its first block is wrong");
}

TEST(Stream, AnOrdinaryInputTakesOneFileOnly) {
  const Folder folder;
  make_stream(folder.file("two.h5"), "snapshots", 2);
  const std::string bytes = file_bytes(folder.file("two.h5"));
  const Feeder feeder(folder.file("fifo"), bytes, bytes.size());
  EXPECT_EQ(error_of([&] { Input(feeder.path, "snapshots"); }),
            "3 " + feeder.path + ": more data follow the end of the file; expected one file, not a stream of batches");
}

TEST(Stream, ToAFileIsAllOrNothing) {
  const Folder folder;
  {
    StreamWriter stream({folder.file("s.h5"), 0, false}, "tokens", test::sample_invocation(), {});
    Output batch = stream.batch();
    test::write_sample(batch, "tokens");
    batch.commit();
    EXPECT_FALSE(std::filesystem::exists(folder.file("s.h5")));
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(Superblock, ReadsOldVersionsToo) {
  // Version 0 and 1 heads laid out by the specification; h5py writes version 0 by default.
  std::string head("\x89HDF\r\n\x1a\n", 8);
  head.resize(kSuperblockBytes, '\0');
  head[13] = head[14] = 8;
  for (const int version : {0, 1}) {
    std::string h = head;
    h[8] = static_cast<char>(version);
    h[version == 0 ? 40 : 44] = 0x34;
    h[version == 0 ? 41 : 45] = 0x12;
    Frame frame;
    EXPECT_EQ(parse_superblock({reinterpret_cast<const unsigned char*>(h.data()), h.size()}, frame), "");
    EXPECT_EQ(frame.bytes, 0x1234U);
    EXPECT_FALSE(frame.checksummed);
  }
}

TEST(Superblock, ChecksumIsLookup3) {
  // Values published with the algorithm.
  const auto sum = [](std::string_view text) { return lookup3({reinterpret_cast<const unsigned char*>(text.data()), text.size()}); };
  EXPECT_EQ(sum(""), 0xdeadbeefU);
  EXPECT_EQ(sum("Four score and seven years ago"), 0x17770551U);
}

}  // namespace
}  // namespace gdds::h5
