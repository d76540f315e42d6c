// Small valid files of every kind, made from the schema itself, so that a kind added there is tested everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "h5/output.h"

namespace gdds::test {

// Fills an output of that kind with n sequences (where the kind has any); other numbers make other values.
void write_sample(h5::Output& output, std::string_view kind, std::uint64_t n = 5, std::uint64_t variant = 0);

// The invocation such files are said to come from.
Invocation sample_invocation();

}  // namespace gdds::test
