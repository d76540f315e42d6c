// Products of all points with each other, a block with a block, as fast as the machine can: by whole numbers of 16 bits where
// it multiplies these twice as fast as floats (AVX-512 VNNI), else by BLAS. Neither is exact; what the distances made of them
// can be off by is known for every token, and the search allows for it. Private to lib/graph.
//
// A block is every n-th token, n being the number of blocks: vocabularies are sorted, by frequency or by alphabet, and each
// block should be like the whole. A token's place is its row among those of all blocks, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/tiles.h"

namespace gdds::graph {

struct Blocks {
  std::int64_t m = 0;
  std::int64_t size = 0;   // places of a block; the last one or none stays empty
  std::int64_t count = 0;
  std::int64_t rows(std::int64_t block) const { return (m - block + count - 1) / count; }
  std::int64_t places() const { return count * size; }
  std::int64_t place(std::int64_t token) const { return token % count * size + token / count; }
  std::int64_t token(std::int64_t place) const { return place % size * count + place / size; }
};

// Blocks of m tokens, at most as large as a product tile that stays in the cache of a core, and enough of them that all
// threads find some.
Blocks divide(std::int64_t m, int threads);

class Products {
 public:
  explicit Products(const Blocks& blocks) : blocks(blocks) {}
  virtual ~Products() = default;
  // tile[i, j] of [size, size]: row i of one block with row j of the other, wherever both have one.
  virtual void multiply(std::int64_t block, std::int64_t other, float* tile) const = 0;
  // What norms[i] + norms[j] - scale * product can be off by, for token i and any j.
  virtual const std::vector<float>& errors() const = 0;
  const Blocks blocks;
};

bool has_integer_products();
// The points must outlive these.
std::unique_ptr<Products> integer_products(const Prepared& prepared, const Blocks& blocks);
std::unique_ptr<Products> float_products(const Prepared& prepared, const Blocks& blocks);

}  // namespace gdds::graph
