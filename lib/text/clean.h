// The published detokenisers: data sets that come as words with blanks between them are turned back into ordinary text
// before they are encoded, in the way the papers on zero-shot perplexity do it. One document at a time.
#pragma once

#include <string>
#include <vector>

namespace gdds::text {

// The names --clean takes: none, ptb, wikitext, lm1b, lambada.
const std::vector<std::string>& clean_names();
std::string clean(const std::string& name, std::string document);

}  // namespace gdds::text
