// A process for people: how a sentence decays under it, and what there is to know about it.
#pragma once

#include <functional>
#include <string>

#include "base/seed.h"
#include "diffusion/process.h"
#include "text/vocabulary.h"

namespace gdds::diffusion {

using WriteText = std::function<void(const std::string&)>;

// The contents of a file of that name, or, if there is none, the text itself; without the end of its last line.
std::string text_or_file(const std::string& text);

// The text's tokens at t = 0, 0.1, ..., 1 of one path each, a line a time: kept, moved by the semantic kernel, reset. In
// colours, or with marks.
void show_decay(const std::string& text, const text::Vocabulary& vocabulary, const Process& process, Seed seed, bool colours, const WriteText& write);

// Rates, clocks and how near the end is to the prior, as tab-separated rows, then alpha and the chance to have stayed over t.
void describe(const Process& process, const WriteText& write);

}  // namespace gdds::diffusion
