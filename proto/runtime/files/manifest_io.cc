#include "proto/runtime/files/manifest_io.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/util/json_util.h"
#include "proto/core/checksum.h"
#include "proto/runtime/files/folders.h"

namespace strata {
namespace {

constexpr char kCrcPrefix[] = "crc32c ";
// A manifest is some hundred bytes per file of the checkpoint.
constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

absl::Status SystemError(int error, absl::string_view action, absl::string_view path) {
  const absl::Status status = ErrnoStatus(error, action, path);
  // UNAVAILABLE would say that the same call may work soon.
  return absl::IsUnavailable(status) ? absl::InternalError(status.message()) : status;
}

// An open file, closed on destruction.
class File {
 public:
  File(const std::string& path, int flags, FileSystem& files)
      : files_(files), path_(path), fd_(files.Open(path, flags)) {}
  ~File() {
    if (fd_ >= 0) files_.Close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  absl::Status opened() const {
    return fd_ < 0 ? SystemError(-fd_, "open", path_) : absl::OkStatus();
  }
  // Fewer bytes than asked for: the file ends.
  absl::StatusOr<size_t> Read(std::span<uint8_t> bytes, uint64_t offset) const {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = files_.Read(fd_, bytes.subspan(done), offset + done);
      if (n < 0) return SystemError(static_cast<int>(-n), "read", path_);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }
  absl::Status Write(absl::string_view text) const {
    for (uint64_t at = 0; !text.empty();) {
      const iovec part = {const_cast<char*>(text.data()), text.size()};
      const ssize_t n = files_.Write(fd_, {&part, 1}, at);
      if (n < 0) return SystemError(static_cast<int>(-n), "write", path_);
      at += static_cast<uint64_t>(n);
      text.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }
  absl::Status Sync() const {
    const int result = files_.Sync(fd_, SyncWhat::kAll);
    return result < 0 ? SystemError(-result, "sync", path_) : absl::OkStatus();
  }

 private:
  FileSystem& files_;
  const std::string path_;
  const int fd_;
};

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, "/") &&
         !absl::StrContains(name, absl::string_view("\0", 1)) && name != kManifestName;
}

absl::Status CheckNames(const Manifest& manifest) {
  for (const CheckpointFile& file : manifest.files()) {
    if (!IsPlainName(file.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("file name \"", file.name(), "\" of a manifest must be a plain name"));
    }
  }
  return absl::OkStatus();
}

uint32_t CrcOf(absl::string_view text) {
  return Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

absl::Status SyncFolder(const std::string& folder, FileSystem& files) {
  const File file(folder, O_RDONLY | O_DIRECTORY, files);
  return file.opened().ok() ? file.Sync() : file.opened();
}

absl::Status RemoveFile(const std::string& path, FileSystem& files) {
  const int result = files.Remove(path);
  if (result >= 0 || result == -ENOENT) return absl::OkStatus();
  return SystemError(-result, "remove", path);
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const File file(path, O_RDONLY, FileSystem::Kernel());
  if (!file.opened().ok()) return file.opened();
  std::string text;
  uint8_t buffer[1 << 16];
  while (true) {
    const absl::StatusOr<size_t> n = file.Read(buffer, text.size());
    if (!n.ok()) return n.status();
    if (*n == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer), *n);
    if (text.size() > kMaxManifestBytes) {
      return absl::DataLossError(
          absl::StrCat(path, " has more than ", kMaxManifestBytes, " bytes"));
    }
  }
}

absl::Status CheckSizes(const std::string& folder, const Manifest& manifest) {
  for (const CheckpointFile& file : manifest.files()) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    FileInfo info;
    if (const int looked = FileSystem::Kernel().Look(path, info); looked < 0) {
      return absl::DataLossError(
          absl::StrCat("checkpoint file ", path, ": ", std::strerror(-looked)));
    }
    if (info.bytes != file.bytes()) {
      return absl::DataLossError(absl::StrCat("checkpoint file ", path, " has ", info.bytes,
                                              " bytes; the manifest says ", file.bytes()));
    }
  }
  return absl::OkStatus();
}

// "step-<12 or more digits>".
bool ParseFolderName(absl::string_view name, uint64_t* step) {
  if (!absl::StartsWith(name, "step-")) return false;
  name.remove_prefix(5);
  return name.size() >= 12 && std::all_of(name.begin(), name.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(name, step);
}

// Under a temporary name first, and on the device before it gets its own. What was written before
// an error is removed, so nothing that a failed sync was about is ever taken for written.
absl::Status WriteDurably(const std::string& path, absl::string_view text, FileSystem& files) {
  const std::string temporary = path + ".tmp";
  absl::Status s;
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC, files);
    if (!file.opened().ok()) return file.opened();
    s = file.Write(text);
    if (s.ok()) s = file.Sync();
  }
  if (s.ok()) {
    const int renamed = files.Rename(temporary, path);
    if (renamed < 0) s = SystemError(-renamed, "rename", temporary);
  }
  if (!s.ok()) RemoveFile(temporary, files).IgnoreError();
  return s;
}

}  // namespace

std::string CheckpointFolderName(uint64_t step) { return absl::StrFormat("step-%012d", step); }

std::string ModelHashText(const std::vector<CheckpointFile>& files, uint64_t step) {
  unsigned __int128 sum = step;
  for (const CheckpointFile& file : files) {
    sum += (static_cast<unsigned __int128>(file.hash_high()) << 64) | file.hash_low();
  }
  return absl::StrFormat("%016x%016x", static_cast<uint64_t>(sum >> 64),
                         static_cast<uint64_t>(sum));
}

std::vector<CheckpointFile> FilesInOrder(const Manifest& manifest) {
  std::vector<CheckpointFile> files(manifest.files().begin(), manifest.files().end());
  std::stable_sort(
      files.begin(), files.end(),
      [](const CheckpointFile& a, const CheckpointFile& b) { return a.sequence() < b.sequence(); });
  return files;
}

absl::Status WriteManifest(const std::string& folder, const Manifest& manifest, FileSystem& files) {
  if (absl::Status s = CheckNames(manifest); !s.ok()) return s;
  Manifest written = manifest;
  written.set_format(1);
  for (const CheckpointFile& file : manifest.files()) {
    if (file.sequence() > 0) written.set_format(kManifestFormat);
  }
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = false;
  if (auto s = google::protobuf::util::MessageToJsonString(written, &json, options); !s.ok()) {
    return absl::InternalError(absl::StrCat("manifest to JSON: ", std::string(s.message())));
  }
  const std::string text = absl::StrFormat("%s\n%s%08x\n", json, kCrcPrefix, CrcOf(json));

  if (const int made = TryMakeFolders(folder, files); made < 0) {
    return SystemError(-made, "make folder", folder);
  }
  const std::string path = absl::StrCat(folder, "/", kManifestName);
  if (absl::Status s = WriteDurably(path, text, files); !s.ok()) return s;
  if (absl::Status s = SyncFolder(folder, files); !s.ok()) return s;
  const size_t slash = folder.find_last_of('/');
  if (slash == std::string::npos) return SyncFolder(".", files);
  return SyncFolder(slash == 0 ? "/" : folder.substr(0, slash), files);
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifestName);
  auto text = ReadText(path);
  if (!text.ok()) return text.status();
  const auto damaged = [&path](absl::string_view why) {
    return absl::DataLossError(absl::StrCat("manifest ", path, ": ", why));
  };
  const size_t end = text->find('\n');
  if (end == std::string::npos) return damaged("its second line is missing");
  const absl::string_view json = absl::string_view(*text).substr(0, end);
  const std::string expected = absl::StrFormat("%s%08x\n", kCrcPrefix, CrcOf(json));
  if (absl::string_view(*text).substr(end + 1) != expected) {
    return damaged("its checksum does not fit its contents");
  }
  Manifest manifest;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &manifest, options);
  if (!parsed.ok()) return damaged(std::string(parsed.message()));
  if (manifest.format() > kManifestFormat) {
    return absl::UnimplementedError(absl::StrCat("manifest ", path, " has format ",
                                                 manifest.format(), "; this program reads up to ",
                                                 kManifestFormat));
  }
  if (absl::Status s = CheckNames(manifest); !s.ok()) return damaged(s.message());
  return manifest;
}

absl::Status VerifyCheckpointFiles(const std::string& folder, const Manifest& manifest) {
  if (absl::Status s = CheckNames(manifest); !s.ok()) return s;
  if (absl::Status s = CheckSizes(folder, manifest); !s.ok()) return s;
  constexpr size_t kChunk = size_t{1} << 20;
  const auto buffer = std::make_unique<uint8_t[]>(kChunk);
  for (const CheckpointFile& entry : manifest.files()) {
    const std::string path = absl::StrCat(folder, "/", entry.name());
    const File file(path, O_RDONLY, FileSystem::Kernel());
    if (!file.opened().ok()) return absl::DataLossError(file.opened().message());
    uint32_t crc = 0;
    for (uint64_t at = 0;;) {
      const absl::StatusOr<size_t> n = file.Read({buffer.get(), kChunk}, at);
      if (!n.ok()) return absl::DataLossError(n.status().message());
      if (*n == 0) break;
      crc = Crc32cExtend(crc, std::span<const uint8_t>(buffer.get(), *n));
      at += *n;
    }
    if (crc != entry.crc32c()) {
      return absl::DataLossError(absl::StrFormat(
          "checkpoint file %s has CRC32C %08x; the manifest says %08x", path, crc, entry.crc32c()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& directory) {
  CheckpointList list;
  std::vector<std::string> names;
  const int listed = FileSystem::Kernel().List(directory, names);
  if (listed == -ENOENT) return list;
  if (listed < 0) return SystemError(-listed, "list", directory);
  for (const std::string& name : names) {
    list.empty_directory = false;
    uint64_t step = 0;
    if (!ParseFolderName(name, &step)) continue;
    const std::string folder = absl::StrCat(directory, "/", name);
    auto manifest = ReadManifest(folder);
    if (absl::IsNotFound(manifest.status())) continue;
    absl::Status whole = manifest.status();
    if (whole.ok()) whole = CheckSizes(folder, *manifest);
    if (whole.ok() && manifest->step() != step) {
      whole = absl::DataLossError(absl::StrCat("manifest of ", folder, " is of step ",
                                               manifest->step(), "; the folder says ", step));
    }
    if (whole.ok()) {
      list.complete.push_back({step, folder});
    } else {
      list.damaged.push_back({folder, whole});
    }
  }
  std::sort(list.complete.begin(), list.complete.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  std::sort(
      list.damaged.begin(), list.damaged.end(),
      [](const DamagedCheckpoint& a, const DamagedCheckpoint& b) { return a.folder < b.folder; });
  return list;
}

absl::StatusOr<std::optional<CheckpointEntry>> NewestCheckpoint(const std::string& directory) {
  auto list = ListCheckpoints(directory);
  if (!list.ok()) return list.status();
  if (list->complete.empty()) return std::optional<CheckpointEntry>();
  return std::optional<CheckpointEntry>(list->complete.back());
}

absl::Status RemoveCheckpoint(const std::string& folder, FileSystem& files) {
  auto manifest = ReadManifest(folder);
  if (absl::IsNotFound(manifest.status())) return absl::OkStatus();
  if (!manifest.ok()) return manifest.status();
  absl::Status s = RemoveFile(absl::StrCat(folder, "/", kManifestName), files);
  if (s.ok()) s = SyncFolder(folder, files);
  for (const CheckpointFile& file : manifest->files()) {
    if (s.ok()) s = RemoveFile(absl::StrCat(folder, "/", file.name()), files);
  }
  if (s.ok()) files.RemoveFolder(folder);  // stays where something else is in it
  return s;
}

absl::Status RemoveIncomplete(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!IsPlainName(name)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a plain file name"));
    }
  }
  const absl::StatusOr<bool> complete = IsThere(absl::StrCat(folder, "/", kManifestName));
  if (!complete.ok() || *complete) return absl::OkStatus();
  for (const std::string& name : names) {
    absl::Status s = RemoveFile(absl::StrCat(folder, "/", name), FileSystem::Kernel());
    if (!s.ok()) return s;
  }
  FileSystem::Kernel().RemoveFolder(folder);
  return absl::OkStatus();
}

}  // namespace strata
