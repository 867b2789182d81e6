#include "scheduler/store/rocks_metadata_store.h"

#include <fcntl.h>
#include <glog/logging.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "rocksdb/write_batch.h"

namespace strata::scheduler {
namespace {

constexpr size_t kMemtableBytes = size_t{4} << 20;
// What opening may write: the memtable that the log held, and the manifest.
constexpr off_t kRoomBytes = off_t{2} * kMemtableBytes;

absl::Status ToStatus(const rocksdb::Status& status, const std::string& directory) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("metadata store in ", directory, ": ", status.ToString());
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(text);
  if (status.IsCorruption()) return absl::DataLossError(text);
  if (status.IsIOError() && absl::StrContains(text, "Permission denied")) {
    return absl::PermissionDeniedError(text);
  }
  if (status.IsIOError() && absl::StrContains(text, "lock")) {
    return absl::FailedPreconditionError(
        absl::StrCat("metadata store in ", directory,
                     " is open in another process; stop that scheduler or use another --dir (",
                     status.ToString(), ")"));
  }
  return absl::InternalError(text);
}

// RocksDB's own recovery from a full disk can wait for ever (storage/rocks/files.h); a store
// that met an error is opened anew instead.
class NoRecovery : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

// RocksDB's own log file would lie on the same disk, and its second line after one that found no
// room fails an assertion of Debian's RocksDB 7.8 (EnvLogger).
class ErrorLog : public rocksdb::Logger {
 public:
  ErrorLog() : Logger(rocksdb::ERROR_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 512> line;
    std::vsnprintf(line.data(), line.size(), format, arguments);
    LOG(WARNING) << "metadata_store message=\"" << line.data() << '"';
  }
};

rocksdb::Options StoreOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // Some kilobytes per job: small buffers, few files, two background threads are plenty.
  options.write_buffer_size = kMemtableBytes;
  options.max_background_jobs = 2;
  options.max_open_files = 64;
  options.info_log = std::make_shared<ErrorLog>();
  // Small files, of which each opening may add one: no reason for writers to wait.
  options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger = 1000;
  options.listeners.push_back(std::make_shared<NoRecovery>());
  return options;
}

// What has no room meanwhile: a store that is open tries again, a process that starts ends.
constexpr char kGoesOn[] = "the store goes on by itself then";
constexpr char kStartAgain[] = "no scheduler starts before; start it again then";

// Takes kRoomBytes of disk and gives them back. Where there is no such room the store is left
// closed: each attempt to open it would leave files behind.
absl::Status CheckRoom(const std::string& directory, const char* then) {
  const std::string path = directory + "/room.tmp";
  FileSystem& files = FileSystem::Kernel();
  const int file = files.Open(path, O_WRONLY | O_CREAT | O_TRUNC);
  const int error = -(file < 0 ? file : files.Reserve(file, 0, kRoomBytes));
  if (file >= 0) files.Close(file);
  files.Remove(path);
  if (error != ENOSPC && error != EDQUOT) return absl::OkStatus();  // others: as opening meets them
  return absl::ResourceExhaustedError(absl::StrCat("metadata store in ", directory, ": ",
                                                   std::strerror(error), "; nothing is lost. Free ",
                                                   kRoomBytes >> 20, " MiB of that disk: ", then));
}

// Whether what lies in the folder is the store that was opened there: a file of it that RocksDB
// makes once and never replaces is held open, so that no other gets its inode.
class Place {
 public:
  explicit Place(std::string directory)
      : directory_(std::move(directory)), path_(directory_ + "/IDENTITY") {}
  ~Place() {
    if (held()) files_.Close(fd_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  bool held() const { return fd_ >= 0; }

  absl::Status Hold() {
    fd_ = files_.Open(path_, O_RDONLY);
    if (held()) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("metadata store in ", directory_, ": ", std::strerror(-fd_), ": ", path_));
  }

  // NOT_FOUND: it is gone, or another is there.
  absl::Status Check() {
    FileInfo mine, there;
    const int known = files_.Info(fd_, mine), looked = files_.Look(path_, there);
    if (known == 0 && looked == 0 && mine.device == there.device && mine.inode == there.inode) {
      return absl::OkStatus();
    }
    return Gone(path_);
  }

  absl::Status Gone(const std::string& file) const {
    return absl::NotFoundError(absl::StrCat(
        "metadata store in ", directory_, ": ", file,
        " was removed or moved while the store was open, and nobody would find what it records; "
        "move the folder back, or stop the scheduler, put the folder back from a copy, and start "
        "it with --restored"));
  }

 private:
  FileSystem& files_ = FileSystem::Kernel();
  const std::string directory_, path_;
  int fd_ = -1;
};

// An append that fails closes the database, and the next opens it again: RocksDB after an error of
// its disk takes no more writes, or worse, lets them wait.
class RocksMetadataStore : public MetadataStore {
 public:
  explicit RocksMetadataStore(const std::string& directory)
      : directory_(directory), place_(directory) {}

  // Where it was open before no other is begun in its place.
  absl::Status Open() {
    rocksdb::DB* db = nullptr;
    rocksdb::Options options = StoreOptions();
    options.create_if_missing = !place_.held();
    const rocksdb::Status s = rocksdb::DB::Open(options, directory_, &db);
    if (!s.ok()) return ToStatus(s, directory_);
    db_.reset(db);
    return place_.held() ? absl::OkStatus() : place_.Hold();
  }

  absl::Status Append(const std::vector<MetadataChange>& batch) override {
    rocksdb::WriteBatch writes;
    for (const MetadataChange& change : batch) {
      const rocksdb::Status s =
          change.value ? writes.Put(change.key, *change.value) : writes.Delete(change.key);
      if (!s.ok()) return ToStatus(s, directory_);
    }
    absl::Status s = CheckThere();
    if (s.ok()) s = Write(writes);
    // Opened anew, it has nothing to flush, and takes the batch if there is room.
    if (!s.ok() && !absl::IsNotFound(s) && db_ == nullptr) s = CheckRoom(directory_, kGoesOn);
    if (s.ok() && db_ == nullptr) s = Write(writes);
    Say(s);
    return s;
  }

  absl::StatusOr<std::map<std::string, std::string>> Read() const override {
    if (db_ == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("metadata store in ", directory_, " is closed after a failed append"));
    }
    std::map<std::string, std::string> records;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      records.emplace(it->key().ToString(), it->value().ToString());
    }
    if (!it->status().ok()) return ToStatus(it->status(), directory_);
    return records;
  }

 private:
  // NOT_FOUND: what is appended would not be found at the next start.
  absl::Status CheckThere() {
    absl::Status s = place_.Check();
    if (!s.ok() || db_ == nullptr) return s;
    std::unique_ptr<rocksdb::LogFile> log;
    const rocksdb::Status found = db_->GetCurrentWalFile(&log);
    if (found.ok()) return s;
    return place_.Gone(absl::StrCat("its log (", found.ToString(), ")"));
  }

  absl::Status Write(rocksdb::WriteBatch& writes) {
    if (db_ == nullptr) {
      absl::Status s = CheckRoom(directory_, kGoesOn);
      if (s.ok()) s = Open();
      if (!s.ok()) return s;
    }
    rocksdb::WriteOptions options;
    options.sync = true;
    options.no_slowdown = true;  // an error instead of a wait for a flush that may never come
    const rocksdb::Status s = db_->Write(options, &writes);
    if (!s.ok()) db_ = nullptr;
    return ToStatus(s, directory_);
  }

  // When it begins, and when it is over.
  void Say(const absl::Status& s) {
    if (s.ok() == !failing_) return;
    failing_ = !s.ok();
    LOG_IF(ERROR, failing_) << "metadata_not_recorded next=retry error=\"" << s << '"';
    LOG_IF(WARNING, !failing_) << "metadata_recorded_again directory=" << directory_;
  }

  const std::string directory_;
  Place place_;
  std::unique_ptr<rocksdb::DB> db_;  // null: closed after an error
  bool failing_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetadataStore>> OpenRocksMetadataStore(
    const std::string& directory) {
  if (const int made = TryMakeDurableFolders(directory); made < 0) {
    const std::string text = absl::StrCat("cannot make ", directory, ": ", std::strerror(-made));
    return made == -EACCES ? absl::PermissionDeniedError(text) : absl::InternalError(text);
  }
  auto store = std::make_unique<RocksMetadataStore>(directory);
  if (absl::Status s = CheckRoom(directory, kStartAgain); !s.ok()) return s;
  if (absl::Status s = store->Open(); !s.ok()) return s;
  return store;
}

}  // namespace strata::scheduler
