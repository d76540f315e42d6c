// Bytes in and out of file descriptors, whole or not at all, with the errors of the world told apart: a reader that went
// away is ClosedPipe, anything else an Error that names the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gdds::h5 {

// Reads until `bytes` are there or the input ends; returns how many came.
std::size_t read_up_to(int descriptor, void* data, std::size_t bytes, const std::string& name);
void write_all(int descriptor, const void* data, std::size_t bytes, const std::string& name);
// The same, but if it fails and the destination is a regular file, what was written is cut off again.
void write_whole(int descriptor, const void* data, std::size_t bytes, const std::string& name);
// Copies the first `bytes` of a file to a descriptor, inside the kernel where it can; cuts off as above.
void copy_file_to(int source, std::uint64_t bytes, int destination, const std::string& name);
// Copies exactly `bytes` from one descriptor to another; returns how many came before the input ended.
std::uint64_t transfer(int source, int destination, std::uint64_t bytes, const std::string& source_name,
                       const std::string& destination_name);

}  // namespace gdds::h5
