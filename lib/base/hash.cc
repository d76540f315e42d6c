// See hash.h.
#include "base/hash.h"

#include <cstdint>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace gdds {

void Hash::Free::operator()(void* state) const { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }

Hash::Hash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void Hash::update(const void* data, std::size_t bytes) {
  if (bytes > 0) XXH3_128bits_update(static_cast<XXH3_state_t*>(state_.get()), data, bytes);
}

void Hash::update_field(std::string_view text) {
  const std::uint64_t size = text.size();
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(size >> (8 * i));
  update(bytes, sizeof bytes);
  update(text);
}

std::string Hash::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

std::string hash_hex(std::string_view data) {
  Hash hash;
  hash.update(data);
  return hash.hex();
}

}  // namespace gdds
