// See config.h.
#include "cli/config.h"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "base/error.h"
#include "base/invocation.h"

namespace gdds::cli {
namespace {

constexpr std::size_t kLargestPreset = 1 << 20;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool is_name(std::string_view text) {
  const auto inner = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (text.empty() || text.front() == '-') return false;
  for (const char c : text)
    if (!inner(c)) return false;
  return true;
}

std::string find_preset(const std::string& name, const std::string& tool) {
  if (name.find('/') != std::string::npos || std::filesystem::exists(name)) return name;
  const std::string file = share_directory() + "/presets/" + tool + "/" + name + ".conf";
  if (!std::filesystem::exists(file)) bad_usage("--config {}: no such file, and no preset of {} is called that", name, tool);
  return file;
}

}  // namespace

std::vector<Setting> parse_config(std::string_view text, const std::string& file) {
  std::vector<Setting> settings;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!is_utf8(std::string(line)) || line.find('\0') != std::string_view::npos)
      bad_usage("{}:{}: not UTF-8 text", file, number);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, equals));
    if (equals == std::string_view::npos || !is_name(name))
      bad_usage("{}:{}: expected 'name = value', found '{}'", file, number, line.substr(0, 60));
    settings.push_back({std::string(name), std::string(trimmed(line.substr(equals + 1))), number});
  }
  return settings;
}

std::vector<Setting> read_config(const std::string& name, const std::string& tool) {
  const std::string file = find_preset(name, tool);
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  if (stream) {
    text.resize(kLargestPreset + 1);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.eof() && text.size() <= kLargestPreset) bad_usage("--config {}: cannot read it", name);
  if (text.size() > kLargestPreset) bad_usage("--config {}: larger than {} bytes, so not a preset", name, kLargestPreset);
  return parse_config(text, file);
}

std::string share_directory() {
  if (const char* chosen = std::getenv("GDDS_SHARE"); chosen != nullptr && *chosen != '\0') return chosen;
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0 || n >= static_cast<ssize_t>(sizeof path)) return "share/gdds";
  return std::filesystem::path(std::string(path, static_cast<std::size_t>(n))).parent_path().parent_path() / "share" / "gdds";
}

}  // namespace gdds::cli
