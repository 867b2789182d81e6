#include "storage/rocks/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"

namespace strata::storage {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

bool LacksRoom(int error) { return error == ENOSPC || error == EDQUOT; }
bool LacksHandles(int error) { return error == EMFILE || error == ENFILE; }

IOStatus ErrorOf(const std::string& trouble, int error) {
  return LacksRoom(error) ? IOStatus::NoSpace(trouble) : IOStatus::IOError(trouble);
}

std::string TroubleOf(absl::string_view action, const std::string& path, int error) {
  return absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error));
}

// The system call's error that a test wants at a place, or 0.
int ErrorAt(absl::string_view place) {
  const absl::Status s = Failpoint(place);
  if (s.ok()) return 0;
  return absl::IsResourceExhausted(s) ? ENOSPC : EIO;
}

class TierFile final : public rocksdb::FSWritableFile {
 public:
  TierFile(int fd, std::string path, const FileOptions& options, std::shared_ptr<RoomWatch> watch)
      : rocksdb::FSWritableFile(options),
        fd_(fd),
        path_(std::move(path)),
        direct_(options.use_direct_writes),
        watch_(std::move(watch)) {}
  ~TierFile() override {
    if (fd_ >= 0) close(fd_);
  }

  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return WriteAt(data, size_);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions&,
                            IODebugContext*) override {
    return WriteAt(data, offset);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0) return Failed("truncate");
    size_ = size;
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    const int fd = std::exchange(fd_, -1);
    if (fd >= 0 && close(fd) != 0) return Failed("close");
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  // A failed sync is never tried again: the pages that it dropped would look synced.
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    errno = ErrorAt("tier.sync");
    return errno == 0 && fdatasync(fd_) == 0 ? IOStatus::OK() : Failed("sync");
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    errno = ErrorAt("tier.sync");
    return errno == 0 && fsync(fd_) == 0 ? IOStatus::OK() : Failed("sync");
  }
  bool IsSyncThreadSafe() const override { return true; }
  bool use_direct_io() const override { return direct_; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }

 private:
  IOStatus Failed(absl::string_view action) const {
    return ErrorOf(TroubleOf(action, path_, errno), errno);
  }

  IOStatus WriteAt(const Slice& data, uint64_t offset) {
    RoomWatch::Shortage shortage(watch_.get());
    for (size_t done = 0; done < data.size();) {
      errno = ErrorAt("tier.file.write");
      const ssize_t n = errno != 0 ? -1
                                   : pwrite(fd_, data.data() + done, data.size() - done,
                                            static_cast<off_t>(offset + done));
      if (n > 0) {
        done += static_cast<size_t>(n);
        // A direct write that was cut short goes on at a whole block.
        if (direct_ && done < data.size()) done -= done % GetRequiredBufferAlignment();
        continue;
      }
      const int error = n == 0 ? ENOSPC : errno;
      if (error == EINTR) continue;
      const std::string trouble = TroubleOf("write", path_, error);
      if (!LacksRoom(error) || !shortage.Await(trouble)) return ErrorOf(trouble, error);
    }
    watch_->bytes_written.fetch_add(data.size(), std::memory_order_relaxed);
    size_ = offset + data.size();
    return IOStatus::OK();
  }

  int fd_;
  const std::string path_;
  const bool direct_;
  const std::shared_ptr<RoomWatch> watch_;
  uint64_t size_ = 0;
};

class TierFolder final : public rocksdb::FSDirectoryWrapper {
 public:
  TierFolder(std::unique_ptr<rocksdb::FSDirectory> folder, std::string path)
      : FSDirectoryWrapper(std::move(folder)), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    if (const int error = ErrorAt("tier.sync"); error != 0) return Failed(error);
    return FSDirectoryWrapper::Fsync(options, debug);
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& what) override {
    if (const int error = ErrorAt("tier.sync"); error != 0) return Failed(error);
    return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, what);
  }

 private:
  IOStatus Failed(int error) const { return ErrorOf(TroubleOf("sync", path_, error), error); }

  const std::string path_;
};

class TierFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  TierFileSystem(std::shared_ptr<RoomWatch> watch, std::shared_ptr<ReadQueues> queues)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        watch_(std::move(watch)),
        queues_(std::move(queues)) {}

  const char* Name() const override { return "StrataTierFileSystem"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* out,
                           IODebugContext*) override {
    constexpr int kFlags = O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC;
    FileOptions opened = options;
    RoomWatch::Shortage shortage(watch_.get());
    for (;;) {
      const int fd = open(path.c_str(), kFlags | (opened.use_direct_writes ? O_DIRECT : 0), 0644);
      if (fd >= 0) {
        *out = std::make_unique<TierFile>(fd, path, opened, watch_);
        return IOStatus::OK();
      }
      const int error = errno;
      if (error == EINTR) continue;
      if (error == EINVAL && opened.use_direct_writes) {  // a file system without direct IO
        opened.use_direct_writes = false;
        continue;
      }
      const std::string trouble = TroubleOf("create", path, error);
      const bool passes = LacksRoom(error) || LacksHandles(error);
      if (!passes || !shortage.Await(trouble)) return ErrorOf(trouble, error);
    }
  }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* out,
                               IODebugContext*) override {
    return Open([&] { return OpenForReads(target(), path, options, queues_, out); });
  }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* out,
                             IODebugContext* debug) override {
    return Open([&] { return target()->NewSequentialFile(path, options, out, debug); });
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* out,
                        IODebugContext* debug) override {
    const IOStatus s = Open([&] { return target()->NewDirectory(path, options, out, debug); });
    if (s.ok()) *out = std::make_unique<TierFolder>(std::move(*out), path);
    return s;
  }

 private:
  template <typename OpenFile>
  IOStatus Open(const OpenFile& open_file) {
    RoomWatch::Shortage shortage(watch_.get());
    for (;;) {
      const IOStatus s = open_file();
      // RocksDB has no code of its own for want of handles, only strerror's text.
      if (s.ok() || !absl::StrContains(s.ToString(), std::strerror(EMFILE))) return s;
      if (!shortage.Await(s.ToString())) return s;
    }
  }

  const std::shared_ptr<RoomWatch> watch_;
  const std::shared_ptr<ReadQueues> queues_;
};

}  // namespace

RoomWatch::Shortage::~Shortage() {
  if (!failed_) return;
  MutexLock lock(&watch_->mu_);
  --watch_->lacking_;
  ++watch_->changes_;
}

bool RoomWatch::Shortage::Await(absl::string_view trouble) {
  MutexLock lock(&watch_->mu_);
  if (!watch_->open_ || ReaderScope::OnThisThread()) return false;
  if (!failed_) {
    failed_ = true;
    ++watch_->lacking_;
  }
  watch_->trouble_ = std::string(trouble);
  ++watch_->failures_;
  ++watch_->changes_;
  ++watch_->waiting_;
  const auto again = [this] {
    watch_->mu_.AssertHeld();
    return !watch_->open_ || watch_->kicks_ != seen_kicks_;
  };
  Timer* const timer = watch_->timer_;
  AwaitUntil(timer, &watch_->mu_, absl::Condition(&again), timer->Now() + kRetry);
  --watch_->waiting_;
  seen_kicks_ = watch_->kicks_;
  return watch_->open_;
}

void RoomWatch::Open() {
  MutexLock lock(&mu_);
  open_ = true;
}

void RoomWatch::Close() {
  MutexLock lock(&mu_);
  open_ = false;
  ++changes_;
}

void RoomWatch::Progress() {
  MutexLock lock(&mu_);
  ++changes_;
}

uint64_t RoomWatch::changes() const {
  MutexLock lock(&mu_);
  return changes_;
}

bool RoomWatch::AwaitChange(uint64_t seen, absl::Duration limit) {
  MutexLock lock(&mu_);
  const auto changed = [this, seen] {
    mu_.AssertHeld();
    return changes_ != seen;
  };
  return AwaitUntil(timer_, &mu_, absl::Condition(&changed), timer_->Now() + limit);
}

std::string RoomWatch::TryAgain(absl::Duration limit) {
  MutexLock lock(&mu_);
  if (lacking_ == 0) return "";
  ++kicks_;
  // An attempt in progress may have begun before: its failure proves nothing.
  const uint64_t proof = failures_ + (lacking_ - waiting_) + 1;
  const auto known = [this, proof] {
    mu_.AssertHeld();
    return !open_ || lacking_ == 0 || failures_ >= proof;
  };
  AwaitUntil(timer_, &mu_, absl::Condition(&known), timer_->Now() + limit);
  return lacking_ == 0 ? "" : trouble_;
}

std::shared_ptr<rocksdb::FileSystem> MakeTierFileSystem(std::shared_ptr<RoomWatch> watch,
                                                        std::shared_ptr<ReadQueues> queues) {
  return std::make_shared<TierFileSystem>(std::move(watch), std::move(queues));
}

}  // namespace strata::storage
