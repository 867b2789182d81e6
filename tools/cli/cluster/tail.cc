#include "tools/cli/cluster/tail.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBlockBytes = 64 << 10;

std::string ReadFrom(const std::string& path, uint64_t offset, uint64_t limit) {
  std::ifstream in(path, std::ios::binary);
  if (!in.seekg(static_cast<std::streamoff>(offset))) return "";
  std::string text(limit, '\0');
  in.read(text.data(), static_cast<std::streamsize>(limit));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// Where in `text` its last `lines` lines begin.
size_t StartOfLast(const std::string& text, uint32_t lines) {
  size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (; lines > 0 && at != std::string::npos; --lines) {
    at = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  }
  return at == std::string::npos ? 0 : at + 1;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LogNames(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".log") names.push_back(it->path().stem().string());
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinNames(const std::vector<std::string>& names) { return absl::StrJoin(names, ", "); }

std::string LastLines(const std::string& path, uint32_t lines, uint64_t from) {
  const uint64_t size = SizeOf(path);
  const uint64_t block = size - std::min(size, kBlockBytes);
  const std::string text = ReadFrom(path, std::max(block, from), kBlockBytes);
  return text.substr(StartOfLast(text, lines));
}

Tail::Tail(const std::string& folder, const std::vector<std::string>& names, uint32_t lines,
           Format format)
    : format_(format) {
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name, ".log");
    const uint64_t size = SizeOf(path);
    logs_.push_back({name, path, size - std::min<uint64_t>(size, LastLines(path, lines).size())});
    width_ = std::max(width_, name.size());
  }
}

void Tail::PrintLine(const Log& log, absl::string_view line, std::FILE* out) const {
  if (format_ == Format::kText) {
    std::fprintf(out, "%-*s %.*s\n", static_cast<int>(width_), log.name.c_str(),
                 static_cast<int>(line.size()), line.data());
    return;
  }
  using Json = nlohmann::ordered_json;
  const Json json = {{"process", log.name}, {"line", std::string(line)}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::fprintf(out, "%s\n", text.c_str());
}

void Tail::Print(std::FILE* out) {
  for (Log& log : logs_) {
    if (SizeOf(log.path) < log.offset) log.offset = 0;  // the file was begun anew
    for (;;) {
      const std::string text = ReadFrom(log.path, log.offset, kBlockBytes);
      size_t end = text.rfind('\n');
      // A line longer than a block is printed in pieces.
      if (end == std::string::npos && text.size() == kBlockBytes) end = text.size() - 1;
      if (end == std::string::npos) break;
      log.offset += end + 1;
      for (size_t at = 0; at <= end;) {
        const size_t stop = std::min(text.find('\n', at), end);
        PrintLine(log, absl::string_view(text).substr(at, stop - at), out);
        at = stop + 1;
      }
    }
  }
  std::fflush(out);
}

}  // namespace strata
