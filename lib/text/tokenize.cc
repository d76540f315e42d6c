// See tokenize.h.
#include "text/tokenize.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/threads.h"
#include "text/chunker.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

// Blocks through `work` on several threads and, in their order, through `consume` on this one. `work` gets the number of
// its thread. At most eight blocks a thread are on their way, so memory stays bounded.
template <typename Result>
void in_order(Corpus& corpus, Progress& progress, const std::function<Result(int, Block&)>& work, const std::function<void(Result&&)>& consume) {
  struct Task {
    Block block;
    Result result;
    std::exception_ptr error;
    bool done = false;
  };
  const int count = threads();
  if (count == 1) {
    for (Block block; corpus.next(block); progress.advance(block.bytes_read)) consume(work(0, block));
    return;
  }
  std::mutex mutex;
  std::condition_variable to_work, is_done;
  std::deque<std::shared_ptr<Task>> waiting, all;
  bool stop = false;
  const auto loop = [&](int number) {
    while (true) {
      std::unique_lock lock(mutex);
      to_work.wait(lock, [&] { return stop || !waiting.empty(); });
      if (waiting.empty()) return;
      const auto task = waiting.front();
      waiting.pop_front();
      lock.unlock();
      try {
        task->result = work(number, task->block);
      } catch (...) {
        task->error = std::current_exception();
      }
      lock.lock();
      task->done = true;
      is_done.notify_one();
    }
  };
  std::vector<std::thread> workers;
  const auto finish = [&] {
    {
      const std::lock_guard lock(mutex);
      stop = true;
      waiting.clear();
    }
    to_work.notify_all();
    for (std::thread& worker : workers) worker.join();
  };
  for (int i = 0; i < count; ++i) workers.emplace_back(loop, i);
  try {
    bool more = true;
    while (more || !all.empty()) {
      if (more && all.size() < static_cast<std::size_t>(8 * count)) {
        auto task = std::make_shared<Task>();
        more = corpus.next(task->block);
        if (!more) continue;
        const std::lock_guard lock(mutex);
        waiting.push_back(task);
        all.push_back(task);
        to_work.notify_one();
        continue;
      }
      const auto task = all.front();
      all.pop_front();
      {
        std::unique_lock lock(mutex);
        is_done.wait(lock, [&] { return task->done; });
      }
      if (task->error) std::rethrow_exception(task->error);
      progress.advance(task->block.bytes_read);
      consume(std::move(task->result));
    }
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

struct Encoded {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> document_ends;  // in ids
};

std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    if (next == 'n') out += '\n';
    else if (next == 't') out += '\t';
    else if (next == '0') out += '\0';
    else if (next == '\\') out += '\\';
    else bad_usage("--separator: expected \\n, \\t, \\0 or \\\\, found '\\{}'", next);
  }
  return out;
}

}  // namespace

void SpecialOptions::add_to(Options& options) {
  options.option("eos", eos, "add <|endoftext|>, if there is no such token");
  options.option("mask", mask, "add <|mask|>, if there is no such token");
  options.option("pad", pad, "add <|pad|>, if there is no such token");
}

void SpecialOptions::apply(Vocabulary& v) const {
  if (eos && v.eos < 0) v.eos = v.add("<|endoftext|>", true);
  if (mask && v.mask < 0) v.mask = v.add("<|mask|>", true);
  if (pad && v.pad < 0) v.pad = v.add("<|pad|>", true);
}

EncodeSummary encode_corpus(Corpus& corpus, const Encoder& encoder, const Vocabulary& vocabulary, const ChunkOptions& options, h5::Output& output) {
  Chunker chunker(vocabulary, options, output);
  std::vector<std::unique_ptr<Encoder>> encoders;
  for (int i = 0; i < threads(); ++i) encoders.push_back(encoder.copy());
  Progress progress("encoding", corpus.total_bytes(), "bytes");
  const auto work = [&](int number, Block& block) {
    Encoded out;
    out.ids.reserve(block.text.size() / 3);
    for (const Segment& s : block.segments) {
      try {
        encoders[static_cast<std::size_t>(number)]->encode(std::string_view(block.text).substr(s.begin, s.end - s.begin), out.ids);
      } catch (const Unencodable& wrong) {
        corpus.reject_at(s, wrong.at, wrong.what);
      }
      if (s.ends_document) out.document_ends.push_back(out.ids.size());
    }
    return out;
  };
  const auto consume = [&](Encoded&& encoded) {
    std::size_t begin = 0;
    const auto ids = std::span<const std::int32_t>(encoded.ids);
    for (const std::size_t end : encoded.document_ends) {
      chunker.add(ids.subspan(begin, end - begin));
      chunker.end_document();
      begin = end;
    }
    chunker.add(ids.subspan(begin));
  };
  in_order<Encoded>(corpus, progress, work, consume);
  chunker.finish();
  return {corpus.documents(), corpus.bytes(), chunker.tokens(), chunker.sequences(), chunker.dropped()};
}

Vocabulary learn_vocabulary(Corpus& corpus, const LearnOptions& options, const SpecialOptions& special) {
  std::vector<Counts> counts(static_cast<std::size_t>(threads()), Counts(options));
  {
    Progress progress("reading", corpus.total_bytes(), "bytes");
    const auto work = [&](int number, Block& block) {
      for (const Segment& s : block.segments) {
        try {
          counts[static_cast<std::size_t>(number)].add(std::string_view(block.text).substr(s.begin, s.end - s.begin));
        } catch (const Unencodable& wrong) {
          corpus.reject_at(s, wrong.at, wrong.what);
        }
      }
      return 0;
    };
    in_order<int>(corpus, progress, work, [](int&&) {});
  }
  for (std::size_t i = 1; i < counts.size(); ++i) counts[0].add(counts[i]);
  if (counts[0].words().empty()) reject("there is no text to learn from");
  if (options.model == "characters") {
    Vocabulary vocabulary = learn_characters(counts[0], options);
    special.apply(vocabulary);
    return vocabulary;
  }
  const std::int64_t room = options.size - special.eos - special.mask - special.pad;
  Vocabulary vocabulary = learn_bpe(counts[0], room, options);
  if (vocabulary.size() < room)
    log::warning("only {} tokens: no other pair occurs {} times", vocabulary.size() + options.size - room, options.min_count);
  special.apply(vocabulary);
  return vocabulary;
}

void show_tokens(Corpus& corpus, const Encoder& encoder, const Vocabulary& vocabulary, const std::function<void(const std::string&)>& line) {
  const auto own = encoder.copy();
  std::string text;
  for (Block block; corpus.next(block);) {
    for (const Segment& s : block.segments) {
      std::vector<std::int32_t> ids;
      try {
        own->encode(std::string_view(block.text).substr(s.begin, s.end - s.begin), ids);
      } catch (const Unencodable& wrong) {
        corpus.reject_at(s, wrong.at, wrong.what);
      }
      for (const std::int32_t id : ids) text += (text.empty() ? "" : "|") + shown_token(vocabulary.token(id));
      if (!s.ends_document) continue;
      line(text);
      text.clear();
    }
  }
}

void DecodeOptions::add_to(Options& options) {
  options.option("separator", separator, "text behind each sequence; \\n, \\t, \\0 and \\\\ are understood");
  options.option("special", special, "whether special tokens are shown by their names").choices({"show", "hide"});
}

void decode_sequences(const h5::Input& input, const DecodeOptions& options, const std::function<void(const std::string&)>& write) {
  if (input.kind() != "tokens" && input.kind() != "samples")
    reject("{}: expected kind 'tokens' or 'samples', found '{}'", input.name(), input.kind());
  const Vocabulary vocabulary = read_vocabulary(input);
  const std::string separator = unescaped(options.separator);
  const auto shape = input.shape("/tokens");
  const std::uint64_t length = shape[1];
  std::vector<std::int32_t> lengths(input.has("/lengths") ? input.read<std::int32_t>("/lengths") : std::vector<std::int32_t>());
  const std::uint64_t step = std::max<std::uint64_t>(1, (1 << 20) / std::max<std::uint64_t>(1, length));
  std::vector<std::int32_t> rows;
  for (std::uint64_t at = 0; at < shape[0]; at += step) {
    const std::uint64_t now = std::min(step, shape[0] - at);
    rows.resize(now * length);
    input.read_rows<std::int32_t>("/tokens", at, now, rows);
    std::string text;
    for (std::uint64_t i = 0; i < now; ++i) {
      const std::int32_t* const row = rows.data() + i * length;
      std::uint64_t count = length;
      if (!lengths.empty()) {
        const std::int32_t said = lengths[at + i];
        if (said < 0 || static_cast<std::uint64_t>(said) > length) reject("{}: /lengths[{}] is {}, expected 0 to {}", input.name(), at + i, said, length);
        count = static_cast<std::uint64_t>(said);
      }
      for (std::uint64_t l = 0; l < count; ++l)
        if (row[l] < 0 || row[l] >= vocabulary.size())
          reject("{}: /tokens[{}, {}] is {}, but the vocabulary has {} tokens", input.name(), at + i, l, row[l], vocabulary.size());
      text += decode_ids(vocabulary, row, count, options.special == "show") + separator;
    }
    write(text);
  }
}

std::string shown_token(std::string_view token) {
  std::string out;
  const char* const end = token.data() + token.size();
  for (const char* p = token.data(); p < end;) {
    const Decoded d = decode(p, end);
    if (d.code == kInvalid || d.code < 0x20 || d.code == 0x7f) {
      if (*p == '\n') out += "\\n";
      else if (*p == '\t') out += "\\t";
      else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(*p));
    } else if (d.code == '\\') {
      out += "\\\\";
    } else {
      out.append(p, d.bytes);
    }
    p += d.bytes;
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> describe(const Vocabulary& v) {
  std::int64_t special = 0;
  std::size_t longest = 0;
  for (std::int32_t id = 0; id < v.size(); ++id) {
    special += v.is_special(id);
    if (!v.is_special(id)) longest = std::max(longest, v.token(id).size());
  }
  const auto id = [&](std::int32_t token) { return token < 0 ? std::string("none") : fmt::format("{} {}", token, shown_token(v.token(token))); };
  return {{"name", v.name},
          {"hash", v.hash()},
          {"model", v.model},
          {"pretokenizer", v.pretokenizer},
          {"normalizer", v.normalizer},
          {"tokens", fmt::format("{}", v.size())},
          {"merges", fmt::format("{}", v.merges.size())},
          {"special", fmt::format("{}", special)},
          {"longest", fmt::format("{} bytes", longest)},
          {"eos", id(v.eos)},
          {"mask", id(v.mask)},
          {"pad", id(v.pad)},
          {"unk", id(v.unk)}};
}

}  // namespace gdds::text
