#include "tools/cli/plot/metrics_file.h"

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace strata {
namespace {

constexpr size_t kBlock = size_t{64} << 10;
constexpr size_t kLongestLine = size_t{1} << 20;

// Cuts blocks into lines.
class Lines {
 public:
  explicit Lines(RunCurve& curve) : curve_(curve) {}

  void Add(absl::string_view text) {
    for (size_t end; (end = text.find('\n')) != absl::string_view::npos;) {
      Append(text.substr(0, end));
      Finish(/*complete=*/true);
      text.remove_prefix(end + 1);
    }
    Append(text);
  }
  void Finish(bool complete) {
    if (too_long_) {
      curve_.AddLongLine();
    } else if (complete || !line_.empty()) {
      curve_.AddLine(line_, complete);
    }
    line_.clear();
    too_long_ = false;
  }

 private:
  void Append(absl::string_view part) {
    too_long_ = too_long_ || line_.size() + part.size() > kLongestLine;
    if (!too_long_) absl::StrAppend(&line_, part);
  }

  RunCurve& curve_;
  std::string line_;
  bool too_long_ = false;
};

}  // namespace

absl::Status ReadMetricsFile(const std::string& path, RunCurve& curve, FileSystem& files) {
  FileInfo info;
  const int looked = files.Look(path, info);
  if (looked == 0 && info.kind == FileKind::kFolder) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a folder; name a file of spec.output.metrics"));
  }
  const int fd = files.Open(path, O_RDONLY);
  if (fd < 0) return ErrnoStatus(-fd, "read", path);
  Lines lines(curve);
  std::vector<uint8_t> block(kBlock);
  uint64_t offset = 0;
  ssize_t got = 0;
  while ((got = files.Read(fd, block, offset)) > 0) {
    lines.Add({reinterpret_cast<const char*>(block.data()), static_cast<size_t>(got)});
    offset += static_cast<uint64_t>(got);
  }
  files.Close(fd);
  if (got < 0) return ErrnoStatus(static_cast<int>(-got), "read", path);
  if (offset == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is empty; name a file of spec.output.metrics that has lines"));
  }
  lines.Finish(/*complete=*/false);
  return absl::OkStatus();
}

}  // namespace strata
