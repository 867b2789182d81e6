#include "scheduler/rocks_metadata_store.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace strata::scheduler {
namespace {

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

class RocksMetadataStore : public MetadataStore {
 public:
  RocksMetadataStore(std::string directory, std::unique_ptr<rocksdb::DB> db)
      : directory_(std::move(directory)), db_(std::move(db)) {}

  absl::Status Append(const std::vector<MetadataChange>& batch) override {
    rocksdb::WriteBatch writes;
    for (const MetadataChange& change : batch) {
      const rocksdb::Status s =
          change.value ? writes.Put(change.key, *change.value) : writes.Delete(change.key);
      if (!s.ok()) return ToStatus(s, directory_);
    }
    rocksdb::WriteOptions options;
    options.sync = true;
    const rocksdb::Status s = db_->Write(options, &writes);
    if (s.ok()) return absl::OkStatus();
    // After a failed write RocksDB refuses all writes until it is told to try again.
    db_->Resume();
    return ToStatus(s, directory_);
  }

  absl::StatusOr<std::map<std::string, std::string>> Read() const override {
    std::map<std::string, std::string> records;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      records.emplace(it->key().ToString(), it->value().ToString());
    }
    if (!it->status().ok()) return ToStatus(it->status(), directory_);
    return records;
  }

 private:
  const std::string directory_;
  const std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetadataStore>> OpenRocksMetadataStore(
    const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    const std::string text = absl::StrCat("cannot make ", directory, ": ", error.message());
    return error == std::errc::permission_denied ? absl::PermissionDeniedError(text)
                                                 : absl::InternalError(text);
  }
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // Some kilobytes per job: small buffers, few files, two background threads are plenty.
  options.write_buffer_size = size_t{4} << 20;
  options.max_background_jobs = 2;
  options.max_open_files = 64;
  options.keep_log_file_num = 4;
  options.max_log_file_size = size_t{1} << 20;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status s = rocksdb::DB::Open(options, directory, &db);
  if (!s.ok()) return ToStatus(s, directory);
  std::unique_ptr<MetadataStore> store =
      std::make_unique<RocksMetadataStore>(directory, std::unique_ptr<rocksdb::DB>(db));
  return store;
}

}  // namespace strata::scheduler
