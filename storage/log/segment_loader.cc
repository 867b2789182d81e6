#include "storage/log/segment_loader.h"

#include <fcntl.h>

#include <utility>

#include "storage/io/file_io.h"

namespace strata::storage {

absl::Status SegmentLoader::Read(const std::string& path, Loaded& loaded) const {
  absl::StatusOr<File> file = File::Open(path, O_RDONLY, files_);
  if (!file.ok()) return file.status();
  absl::StatusOr<uint64_t> size = file->Size();
  if (!size.ok()) return size.status();
  if (*size == 0) return absl::OkStatus();
  absl::StatusOr<HugeMemory> memory = HugeMemory::Allocate(*size, PageUse::kHuge);
  if (!memory.ok()) return memory.status();
  if (absl::Status s = file->ReadAt(0, {memory->data(), *size}); !s.ok()) return s;
  loaded.memory_ = *std::move(memory);
  loaded.size_ = *size;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const SegmentLoader::Loaded>> SegmentLoader::Load(
    const std::string& path, const std::string& next) {
  std::shared_ptr<Loaded> loaded;
  {
    MutexLock lock(&mu_);
    std::erase_if(loaded_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<Loaded>& known = loaded_[path];
    loaded = known.lock();
    if (loaded == nullptr) known = loaded = std::make_shared<Loaded>();
  }
  MutexLock lock(&loaded->mu_);
  if (!loaded->read_) {
    if (!next.empty()) {  // only advice: what fails here fails again when it is read
      absl::StatusOr<File> ahead = File::Open(next, O_RDONLY, files_);
      if (ahead.ok()) (void)posix_fadvise(ahead->fd(), 0, 0, POSIX_FADV_WILLNEED);
    }
    loaded->status_ = Read(path, *loaded);
    loaded->read_ = true;
  }
  if (!loaded->status_.ok()) return loaded->status_;
  return std::shared_ptr<const Loaded>(loaded);
}

}  // namespace strata::storage
