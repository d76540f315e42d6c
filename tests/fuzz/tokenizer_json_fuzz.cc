// Any bytes as a tokenizer.json: a vocabulary, or status 3. What is read is written again to the same hash, or not at
// all (status 2).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "text/assemble.h"
#include "text/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdds;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  text::is_tokenizer_json(bytes);
  text::Vocabulary vocabulary;
  try {
    vocabulary = text::read_tokenizer_json(bytes, "f");
    text::check(vocabulary, "f");
  } catch (const Error& error) {
    if (error.status() != Status::rejected) std::abort();
    return 0;
  }
  try {
    const std::string json = text::write_tokenizer_json(vocabulary);
    if (text::read_tokenizer_json(json, "g").hash() != vocabulary.hash()) std::abort();
  } catch (const Error& error) {
    if (error.status() != Status::usage) std::abort();
  }
  return 0;
}
