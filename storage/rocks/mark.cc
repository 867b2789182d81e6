#include "storage/rocks/mark.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <array>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "storage/io/file_io.h"

namespace strata::storage::rocks {
namespace {

constexpr char kName[] = "/SYNCED";
using Bytes = std::array<uint8_t, 12>;  // number u64 | CRC of the number u32

}  // namespace

absl::StatusOr<uint64_t> SyncMark::Read() const {
  const std::string path = absl::StrCat(directory_, kName);
  absl::StatusOr<File> file = File::Open(path, O_RDONLY);
  if (absl::IsNotFound(file.status())) return uint64_t{0};
  if (!file.ok()) return file.status();
  Bytes bytes;
  if (absl::Status s = file->ReadAt(0, bytes); !s.ok()) return s;
  uint64_t number = 0;
  uint32_t crc = 0;
  std::memcpy(&number, bytes.data(), 8);
  std::memcpy(&crc, bytes.data() + 8, 4);
  if (crc != Crc32c(std::span(bytes).first(8))) {
    return DamagedFile(path, 0, "it does not check; the tier must be filled afresh");
  }
  return number;
}

absl::Status SyncMark::Raise(uint64_t number) {
  const MutexLock lock(&mu_);
  if (number <= number_) return absl::OkStatus();
  const std::string path = absl::StrCat(directory_, kName);
  const std::string fresh = absl::StrCat(path, ".new");
  absl::StatusOr<File> file = File::Open(fresh, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  Bytes bytes;
  std::memcpy(bytes.data(), &number, 8);
  const uint32_t crc = Crc32c(std::span(bytes).first(8));
  std::memcpy(bytes.data() + 8, &crc, 4);
  iovec part = {bytes.data(), bytes.size()};
  if (absl::Status s = file->WriteAt(0, {&part, 1}); !s.ok()) return s;
  if (absl::Status s = file->Sync(); !s.ok()) return s;
  if (absl::Status s = RenameFile(fresh, path); !s.ok()) return s;
  if (absl::Status s = SyncFolder(directory_); !s.ok()) return s;
  number_ = number;
  return absl::OkStatus();
}

absl::Status SyncMark::Remove() const { return RemoveFile(absl::StrCat(directory_, kName)); }

}  // namespace strata::storage::rocks
