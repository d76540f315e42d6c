// The frame around every tool: signals, standard descriptors, the one catch, the exit status.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <new>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/temporary.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/wrap.h"

namespace gdds::cli {
namespace {

// A descriptor 0, 1 or 2 that is closed would be handed to the next file opened. Occupy it, in the direction that fails.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) != descriptor) return;
  }
}

[[noreturn]] void fail_output() {
  if (errno == EPIPE) throw ClosedPipe();
  fail_errno("standard output", "cannot write", errno);
}

// 128 + SIGPIPE, in the way a shell expects it.
int end_by_closed_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;
}

int guarded(const std::string& tool, const std::function<void()>& body) {
  log::set_program(tool);
  occupy_standard_descriptors();
  install_signal_handlers();
  try {
    try {
      body();
    } catch (const TextOnly& only) {
      write_text(only.text);
    }
    finish_text();
    return static_cast<int>(Status::done);
  } catch (const ClosedPipe&) {
    return end_by_closed_pipe();
  } catch (const Stopped& stopped) {
    return 128 + stopped.signal;
  } catch (const Error& error) {
    log::line(error.what());
    return static_cast<int>(error.status());
  } catch (const std::bad_alloc&) {
    log::line("out of memory; see the options that bound it (batch size, threads)");
  } catch (const std::exception& error) {
    log::line(fmt::format("internal error: {}", error.what()));
  }
  return static_cast<int>(Status::failed);
}

std::string verbs_help(const About& about, const std::vector<Verb>& verbs) {
  std::string text = fmt::format("Usage: {} [VERB] [OPTION]... [FILE]...\n{}.\n\n{}\nVerbs:\n", about.tool,
                                 about.summary, wrapped(about.description, 0, 0));
  for (const Verb& verb : verbs)
    text += fmt::format("  {:<12}{}{}\n", verb.name, verb.summary, &verb == &verbs.front() ? " (the default)" : "");
  return text + fmt::format("\n{} VERB --help shows the options of a verb.\nThe manual: man {}\n", about.tool, about.tool);
}

// A word in the place of the verb that is no file either was meant to be one.
void check_is_file(const std::string& word, const About& about, const std::vector<Verb>& verbs) {
  const bool could_be_verb = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!could_be_verb || access(word.c_str(), F_OK) == 0) return;
  std::string names;
  for (const Verb& verb : verbs) names += (names.empty() ? "" : ", ") + verb.name;
  bad_usage("'{}' is neither a verb ({}) nor a file; see {} --help", word, names, about.tool);
}

}  // namespace

void write_text(std::string_view text) {
  if (!text.empty() && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

void finish_text() {
  if (std::fflush(stdout) != 0) fail_output();
}

int run(int argc, char** argv, const About& about, Body body) {
  return guarded(about.tool, [&] {
    Command command(about, "", "", {argv + std::min(argc, 1), argv + argc});
    body(command);
  });
}

int run(int argc, char** argv, const About& about, const std::vector<Verb>& verbs) {
  return guarded(about.tool, [&] {
    std::vector<std::string> words{argv + std::min(argc, 1), argv + argc};
    const auto named = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return !words.empty() && v.name == words[0]; });
    if (named == verbs.end() && !words.empty() && (words[0] == "--help" || words[0] == "-h"))
      throw TextOnly{verbs_help(about, verbs)};
    if (named == verbs.end() && !words.empty()) check_is_file(words[0], about, verbs);
    const Verb& verb = named == verbs.end() ? verbs.front() : *named;
    if (named != verbs.end()) words.erase(words.begin());
    Command command(about, verb.name, verb.summary, std::move(words));
    verb.body(command);
  });
}

}  // namespace gdds::cli
