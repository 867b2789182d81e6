#include "tools/cluster/export/folder.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/locked_file.h"
#include "storage/io/file_io.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kPlanName[] = ".strata-export.json";
constexpr const char* kIndexNames[] = {kNpyIndexName, kSafetensorsIndexName};

// An index of ours is small; anything larger is somebody else's.
constexpr uintmax_t kMaxIndexBytes = uintmax_t{256} << 20;

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

// Names in the index at `path`; none where it is not there or not an export's.
std::vector<std::string> NamedIn(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kMaxIndexBytes) return {};
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  if (json.contains("metadata") && json["metadata"].is_object() &&
      json["metadata"].contains("strata")) {
    json = Json(json["metadata"]["strata"]);
  }
  if (!json.is_object() || !json.contains("format") || json["format"] != kExportMark ||
      !json.contains("files") || !json["files"].is_array()) {
    return {};
  }
  std::vector<std::string> names;
  for (const Json& file : json["files"]) {
    if (!file.is_object() || !file.contains("name") || !file["name"].is_string()) continue;
    std::string name = file["name"].get<std::string>();
    if (IsPlainName(name)) names.push_back(std::move(name));
  }
  return names;
}

absl::Status WriteText(const std::string& path, const std::string& text, FileSystem& files) {
  auto file = storage::File::Open(path, O_WRONLY | O_CREAT | O_TRUNC, files);
  if (!file.ok()) return file.status();
  iovec part = {const_cast<char*>(text.data()), text.size()};
  if (absl::Status s = file->WriteAt(0, {&part, 1}); !s.ok()) return s;
  return file->Sync();
}

class ExportFolderImpl : public ExportFolder {
 public:
  explicit ExportFolderImpl(ExportFolderOptions options) : o_(std::move(options)) {}

  ~ExportFolderImpl() override {
    if (begun_) RemoveBegun();
    if (lock_ >= 0) o_.system->Close(lock_);
  }

  absl::Status Begin() {
    std::error_code error;
    made_ = !fs::exists(o_.path, error);
    if (!made_ && !fs::is_directory(o_.path, error)) {
      return absl::FailedPreconditionError(
          absl::StrCat(o_.path, " is not a folder; name one to write to"));
    }
    if (absl::Status s = storage::MakeFolder(o_.path); !s.ok()) return s;
    lock_ = LockFolder(o_.path, *o_.system);
    if (lock_ == -EWOULDBLOCK) {
      return absl::FailedPreconditionError(absl::StrCat(
          o_.path,
          " is being written by another export; wait for its end, or name another folder"));
    }
    if (lock_ < 0) return ErrnoStatus(-lock_, "open", o_.path);
    if (absl::Status s = LookAround(); !s.ok()) return s;
    begun_ = true;
    Json plan{{"format", kExportMark}, {"files", Json::array()}};
    for (const std::string& name : o_.files) plan["files"].push_back(Json{{"name", name}});
    return WriteText(Path(kPlanName), plan.dump(), *o_.system);
  }

  std::string PartialPath(absl::string_view file) const override {
    return absl::StrCat(Path(file), ".partial");
  }

  absl::Status Publish(const std::string& index_text) override {
    if (absl::Status s = WriteText(PartialPath(o_.index), index_text, *o_.system); !s.ok())
      return s;
    for (const char* index : kIndexNames) {
      if (absl::Status s = RemoveExport(index); !s.ok()) return s;
    }
    for (const std::string& name : o_.files) {
      if (absl::Status s = Rename(name); !s.ok()) return s;
      renamed_.push_back(name);
    }
    if (absl::Status s = storage::SyncFolder(o_.path, *o_.system); !s.ok()) return s;
    if (absl::Status s = Rename(o_.index); !s.ok()) return s;
    Remove(Path(kPlanName));
    begun_ = false;
    return storage::SyncFolder(o_.path, *o_.system);
  }

 private:
  std::string Path(absl::string_view name) const { return absl::StrCat(o_.path, "/", name); }

  void RemoveBegun() const {
    for (const std::string& name : o_.files) Remove(PartialPath(name));
    for (const std::string& name : renamed_) Remove(Path(name));
    Remove(PartialPath(o_.index));
    Remove(Path(kPlanName));
    std::error_code ignored;
    if (made_) fs::remove(o_.path, ignored);  // only when it is empty
  }

  // What cannot be removed stays, and --overwrite takes it later.
  void Remove(const std::string& path) const {
    storage::RemoveFile(path, *o_.system).IgnoreError();
  }
  absl::Status Rename(const std::string& name) const {
    return storage::RenameFile(PartialPath(name), Path(name), *o_.system);
  }

  absl::Status LookAround() {
    std::error_code error;
    const bool empty = fs::is_empty(o_.path, error);
    if (error) return ErrnoStatus(error.value(), "read folder", o_.path);
    if (empty) return absl::OkStatus();
    if (!o_.overwrite) {
      return absl::FailedPreconditionError(
          absl::StrCat(o_.path,
                       " is not empty; name another folder, or replace the export that is "
                       "there by --overwrite (nothing else in it is touched)"));
    }
    std::set<std::string> own = {kPlanName};
    for (const char* index : kIndexNames) {
      const std::vector<std::string> names = NamedIn(Path(index));
      own.insert(names.begin(), names.end());
      if (!names.empty()) own.insert(index);
    }
    // What a killed export left: complete files have their names already, others are partial.
    for (const std::string& name : NamedIn(Path(kPlanName))) {
      own.insert(name);
      own.insert(absl::StrCat(name, ".partial"));
      left_.push_back(name);
      for (const char* index : kIndexNames) own.insert(absl::StrCat(index, ".partial"));
    }
    std::vector<std::string> mine = o_.files;
    mine.push_back(o_.index);
    for (const std::string& name : mine) {
      for (const std::string& taken : {name, absl::StrCat(name, ".partial")}) {
        if (own.count(taken) > 0 || !fs::exists(Path(taken), error)) continue;
        return absl::FailedPreconditionError(
            absl::StrCat(Path(taken),
                         " is in the way, and no index of an export names it; move it "
                         "away or name another folder"));
      }
    }
    for (const char* index : kIndexNames) {
      if (!left_.empty()) fs::remove(PartialPath(index), error);
    }
    for (const std::string& name : left_) {
      fs::remove(PartialPath(name), error);
      // A file that got its name just before the kill, when its index had not: nothing names it.
      if (!Indexed(name)) fs::remove(Path(name), error);
    }
    return absl::OkStatus();
  }

  bool Indexed(const std::string& name) const {
    for (const char* index : kIndexNames) {
      for (const std::string& named : NamedIn(Path(index))) {
        if (named == name) return true;
      }
    }
    return false;
  }

  absl::Status RemoveExport(const char* index) {
    const std::vector<std::string> names = NamedIn(Path(index));
    if (names.empty()) return absl::OkStatus();
    absl::Status s = storage::RemoveFile(Path(index), *o_.system);
    // A power failure leaves no index beside files that it does not belong to.
    if (s.ok()) s = storage::SyncFolder(o_.path, *o_.system);
    for (const std::string& name : names) {
      if (s.ok()) s = storage::RemoveFile(Path(name), *o_.system);
    }
    return s;
  }

  const ExportFolderOptions o_;
  std::vector<std::string> left_;     // named by a plan that was there
  std::vector<std::string> renamed_;  // files that have their names, without an index
  int lock_ = -1;                     // of the folder
  bool made_ = false;
  bool begun_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExportFolder>> ExportFolder::Open(
    const ExportFolderOptions& options) {
  auto folder = std::make_unique<ExportFolderImpl>(options);
  if (absl::Status s = folder->Begin(); !s.ok()) return s;
  return std::unique_ptr<ExportFolder>(std::move(folder));
}

}  // namespace strata
