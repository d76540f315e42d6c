// bench-encode VOCAB FILE [RUNS]: how fast text becomes ids, without reading or writing: one thread, cold (an empty cache)
// and warm. Prints "what<TAB>best MB/s<TAB>median MB/s"; tests/bench/tokenize runs it beside its rival.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "text/encoder.h"
#include "text/readers.h"

namespace {

void report(const char* what, std::size_t bytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%s\t%.1f\t%.1f\n", what, double(bytes) / 1e6 / seconds.front(), double(bytes) / 1e6 / seconds[seconds.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int runs = argc > 3 ? std::atoi(argv[3]) : 7;
  std::vector<gdds::h5::Source> sources;
  const auto encoder = gdds::text::make_encoder(gdds::text::open_vocabulary(argv[1], sources));
  std::ifstream stream(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::vector<double> cold, warm;
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for (int i = 0; i < runs; ++i) {
    const auto fresh = encoder->copy();
    for (auto* times : {&cold, &warm}) {
      ids.clear();
      const auto start = std::chrono::steady_clock::now();
      fresh->encode(text, ids);
      times->push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  report("cold", text.size(), cold);
  report("warm", text.size(), warm);
  std::printf("tokens\t%zu\t%zu\n", ids.size(), ids.size());
}
