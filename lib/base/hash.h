// XXH3 with 128 bits: the name of a piece of data in /history and the fingerprint of a vocabulary. Fast enough to run
// over everything that is written (memory speed), strong enough against accidents; not meant against an adversary.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace gdds {

class Hash {
 public:
  Hash();
  void update(const void* data, std::size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  // A length first, then the text, so that ("ab","c") and ("a","bc") differ.
  void update_field(std::string_view text);
  std::string hex() const;  // 32 lower-case digits, as `xxhsum -H2` prints them

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

std::string hash_hex(std::string_view data);

}  // namespace gdds
