// GenerateCriteo: rows to a file.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tools/generate/auc_sample.h"
#include "tools/generate/criteo_generator.h"
#include "worker/data/formats/natural_log.h"

namespace strata {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

// A file that appears under its name only when it is complete.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path), part_(path + ".part") {}
  ~PartFile() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(part_.c_str());
  }

  absl::Status Open() {
    fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd_ < 0 ? Error("cannot be made", part_) : absl::OkStatus();
  }

  absl::Status Write(const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = write(fd_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Error("cannot be written", part_);
      done += static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0 || rename(part_.c_str(), path_.c_str()) != 0) {
      const absl::Status s = Error("cannot be completed", path_);
      unlink(part_.c_str());
      return s;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Error(const char* what, const std::string& path) {
    const std::string text =
        absl::StrCat("output file ", path, " ", what, ": ", std::strerror(errno));
    if (errno == ENOSPC || errno == EDQUOT) return absl::ResourceExhaustedError(text);
    if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
    if (errno == ENOENT) return absl::NotFoundError(text);
    return absl::UnavailableError(text);
  }

  const std::string path_;
  const std::string part_;
  int fd_ = -1;
};

}  // namespace

absl::StatusOr<CriteoGeneratorResult> GenerateCriteo(
    const CriteoGeneratorOptions& options, const std::string& path,
    const std::function<void(uint64_t rows_done)>& progress) {
  if (options.rows == 0) return absl::InvalidArgumentError("rows: 0; at least 1 is needed");
  absl::StatusOr<std::unique_ptr<CriteoGenerator>> generator = CriteoGenerator::Make(options);
  if (!generator.ok()) return generator.status();
  PartFile file(path);
  if (absl::Status s = file.Open(); !s.ok()) return s;
  CriteoGeneratorResult result;
  result.rows = options.rows;
  AucSample auc(kAucRows);
  double loss = 0;
  std::string text;
  text.reserve(kWriteBytes + 1024);
  for (uint64_t i = 0; i < options.rows; ++i) {
    const GeneratedRow row = (*generator)->AppendRow(options.first_row + i, &text);
    result.positives += row.label ? 1 : 0;
    loss -= NaturalLog(row.label ? row.probability : 1.0 - row.probability);
    auc.Add(static_cast<float>(row.probability), row.label);
    if (text.size() < kWriteBytes && i + 1 < options.rows) continue;
    if (absl::Status s = file.Write(text); !s.ok()) return s;
    result.bytes += text.size();
    text.clear();
    if (progress) progress(i + 1);
  }
  if (absl::Status s = file.Finish(); !s.ok()) return s;
  result.auc_rows = auc.size();
  result.teacher_auc = auc.Auc();
  result.teacher_logloss = loss / static_cast<double>(options.rows);
  return result;
}

}  // namespace strata
