#include "storage/io/file_stream.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::storage {
namespace {

// Alignment of memory, place and length that every device accepts.
constexpr size_t kBlock = 4096;

}  // namespace

void FileStream::Free::operator()(uint8_t* p) const { std::free(p); }

absl::StatusOr<FileStream> FileStream::Create(const std::string& path, FileSystem& files) {
  FileStream stream;
  stream.staging_.reset(static_cast<uint8_t*>(std::aligned_alloc(kBlock, kStagingBytes)));
  if (stream.staging_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", kStagingBytes, " bytes to write ", path, " with"));
  }
  absl::StatusOr<File> file = File::Open(path, O_WRONLY | O_CREAT | O_TRUNC, files);
  if (!file.ok()) return file.status();
  stream.file_ = *std::move(file);
  absl::StatusOr<File> direct = File::Open(path, O_WRONLY | O_DIRECT, files);
  if (direct.ok()) stream.file_ = *std::move(direct);
  return stream;
}

absl::Status FileStream::WriteStaged(size_t bytes) {
  iovec all = {staging_.get(), bytes};
  if (absl::Status s = file_.WriteAt(written_, {&all, 1}); !s.ok()) return s;
  written_ += bytes;
  return absl::OkStatus();
}

absl::Status FileStream::Append(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const size_t take = std::min(bytes.size(), kStagingBytes - staged_);
    std::memcpy(staging_.get() + staged_, bytes.data(), take);
    staged_ += take;
    bytes = bytes.subspan(take);
    if (staged_ < kStagingBytes) continue;
    if (absl::Status s = WriteStaged(kStagingBytes); !s.ok()) return s;
    staged_ = 0;
  }
  return absl::OkStatus();
}

absl::Status FileStream::Finish() {
  const uint64_t size = written_ + staged_;
  const size_t padded = (staged_ + kBlock - 1) / kBlock * kBlock;
  std::memset(staging_.get() + staged_, 0, padded - staged_);
  if (padded > 0) {
    if (absl::Status s = WriteStaged(padded); !s.ok()) return s;
  }
  if (absl::Status s = file_.Truncate(size); !s.ok()) return s;
  return file_.Sync();
}

}  // namespace strata::storage
