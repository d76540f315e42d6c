// Help texts in lines of at most 80 columns. Private to lib/cli.
#pragma once

#include <string>
#include <string_view>

namespace gdds::cli {

// Ends with a line end. All lines but the first are led by `indent` blanks; `column` is where the first one starts.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t column);

}  // namespace gdds::cli
