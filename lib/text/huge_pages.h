// Memory for tables that are read all over: in pages of 2 MB where the system gives them (Linux asks for the advice), since
// with pages of 4 KB a good part of each look goes into finding out where its page is.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace gdds::text {

template <typename T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <typename U>
  HugePages(const HugePages<U>&) {}

  T* allocate(std::size_t count) {
    constexpr std::size_t kPage = std::size_t{1} << 21, kLine = 64;
    static_assert(alignof(T) <= kLine);
    const std::size_t unit = count * sizeof(T) >= kPage ? kPage : kLine;
    const std::size_t bytes = (count * sizeof(T) + unit - 1) / unit * unit;
    void* const memory = std::aligned_alloc(unit, bytes);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (unit == kPage) madvise(memory, bytes, MADV_HUGEPAGE);  // nothing is lost if it is refused
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  bool operator==(const HugePages&) const { return true; }
};

}  // namespace gdds::text
