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
#include "absl/strings/strip.h"
#include "proto/core/checksum.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/finished_file.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"

namespace strata {
namespace {

// Of the directory's lock and of what is written on the way to it (scheduler/store/lock_file.h).
constexpr absl::string_view kLockPrefix = "LOCK.";

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, "/") &&
         !absl::StrContains(name, absl::string_view("\0", 1)) && name != kManifestName &&
         name != kRemovedName;
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

absl::Status CheckSizes(const std::string& folder, const Manifest& manifest) {
  for (const CheckpointFile& file : manifest.files()) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    FileInfo info;
    const int looked = FileSystem::Kernel().Look(path, info);
    if (looked == -ENOENT) {
      return absl::DataLossError(
          absl::StrCat("checkpoint file ", path, ": ", std::strerror(ENOENT)));
    }
    // It may be whole.
    if (looked < 0) return PlainFileError(-looked, "look up the size of", path);
    if (info.bytes != file.bytes()) {
      return absl::DataLossError(absl::StrCat("checkpoint file ", path, " has ", info.bytes,
                                              " bytes; the manifest says ", file.bytes()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckManifestFormat(const std::string& path, uint64_t format) {
  if (format < 1 || format >= kManifestFormat) {
    return CheckFormat("manifest", path, format, kManifestFormat);
  }
  return absl::UnimplementedError(absl::StrCat(
      "manifest ", path, " has format ", format,
      ", which does not say by name what the model is made of; this program reads format ",
      kManifestFormat,
      ": train the model anew, or go on with the version of strata that wrote it"));
}

absl::StatusOr<Manifest> ReadNamed(const std::string& folder, absl::string_view name,
                                   FileSystem& files) {
  const std::string path = absl::StrCat(folder, "/", name);
  Manifest manifest;
  const absl::Status read = ReadRecordFile(path, "manifest", &manifest, files);
  if (absl::IsDataLoss(read)) {
    // Of another format, it may be whole all the same: spec.model.initFrom was a string once.
    const auto format = ReadRecordFormat(path, "manifest", files);
    if (!format.ok()) return read;
    if (absl::Status s = CheckManifestFormat(path, *format); !s.ok()) return s;
  }
  if (!read.ok()) return read;
  if (absl::Status s = CheckManifestFormat(path, manifest.format()); !s.ok()) return s;
  if (absl::Status s = CheckNames(manifest); !s.ok()) {
    return absl::DataLossError(absl::StrCat("manifest ", path, ": ", s.message()));
  }
  return manifest;
}

}  // namespace

std::string CheckpointFolderName(uint64_t step) { return absl::StrFormat("step-%012d", step); }

std::optional<uint64_t> StepOfFolder(absl::string_view name) {
  uint64_t step = 0;
  if (!absl::ConsumePrefix(&name, "step-") || name.size() < 12 ||
      !std::all_of(name.begin(), name.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(name, &step)) {
    return std::nullopt;
  }
  return step;
}

std::string ModelHashText(const std::vector<CheckpointFile>& files, uint64_t step) {
  unsigned __int128 sum = step;
  for (const CheckpointFile& file : files) {
    sum += (static_cast<unsigned __int128>(file.hash_high()) << 64) | file.hash_low();
  }
  return absl::StrFormat("%016x%016x", static_cast<uint64_t>(sum >> 64),
                         static_cast<uint64_t>(sum));
}

absl::StatusOr<FileWriter> WriterOf(const CheckpointFile& file) {
  const auto identity = ParseJobIdentity(file.cluster_id(), file.job_uid());
  if (!identity) {
    return absl::DataLossError(absl::StrCat(
        "checkpoint file ", file.name(), ": its manifest names cluster \"", file.cluster_id(),
        "\" and job UID \"", file.job_uid(), "\"; each must be 32 hexadecimal digits"));
  }
  return FileWriter{*identity, Generation(file.generation()), file.cut()};
}

void SetWriter(const FileWriter& writer, CheckpointFile* file) {
  file->set_cluster_id(writer.identity.cluster.text());
  file->set_job_uid(writer.identity.job.text());
  file->set_generation(writer.generation.value);
  file->set_cut(writer.cut);
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
  written.set_format(kManifestFormat);
  if (const int made = TryMakeFolders(folder, files); made < 0) {
    return PlainFileError(-made, "make folder", folder);
  }
  const std::string path = absl::StrCat(folder, "/", kManifestName);
  if (absl::Status s = WriteRecordFile(path, written, files); !s.ok()) return s;
  if (absl::Status s = SyncPlainFolder(folder, files); !s.ok()) return s;
  const size_t slash = folder.find_last_of('/');
  if (slash == std::string::npos) return SyncPlainFolder(".", files);
  return SyncPlainFolder(slash == 0 ? "/" : folder.substr(0, slash), files);
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder, FileSystem& files) {
  return ReadNamed(folder, kManifestName, files);
}

absl::StatusOr<Manifest> ReadRemovedManifest(const std::string& folder, FileSystem& files) {
  return ReadNamed(folder, kRemovedName, files);
}

absl::Status VerifyCheckpointFiles(const std::string& folder, const Manifest& manifest) {
  if (absl::Status s = CheckNames(manifest); !s.ok()) return s;
  if (absl::Status s = CheckSizes(folder, manifest); !s.ok()) return s;
  constexpr size_t kChunk = size_t{1} << 20;
  const auto buffer = std::make_unique<uint8_t[]>(kChunk);
  for (const CheckpointFile& entry : manifest.files()) {
    const std::string path = absl::StrCat(folder, "/", entry.name());
    const PlainFile file(path, O_RDONLY, FileSystem::Kernel());
    if (!file.opened().ok()) return absl::DataLossError(file.opened().message());
    uint32_t crc = 0;
    for (uint64_t at = 0;;) {
      const absl::StatusOr<size_t> n = file.Read({buffer.get(), kChunk}, at);
      if (!n.ok()) return absl::DataLossError(n.status().message());
      if (*n == 0) break;
      crc = Crc32cExtend(crc, std::span<const uint8_t>(buffer.get(), *n));
      at += *n;
    }
    if (crc != entry.crc32c() && !STRATA_MUTATION("checkpoint.bytes_not_checked")) {
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
  if (listed < 0) return PlainFileError(-listed, "list", directory);
  for (const std::string& name : names) {
    // What says who writes here is there before anything is, and after everything is gone.
    if (!absl::StartsWith(name, kLockPrefix)) list.empty_directory = false;
    const std::optional<uint64_t> step = StepOfFolder(name);
    if (!step) continue;
    const std::string folder = absl::StrCat(directory, "/", name);
    auto manifest = ReadManifest(folder);
    if (absl::IsNotFound(manifest.status())) continue;
    absl::Status whole = manifest.status();
    if (whole.ok()) whole = CheckSizes(folder, *manifest);
    if (whole.ok() && manifest->step() != *step) {
      whole = absl::DataLossError(absl::StrCat("manifest of ", folder, " is of step ",
                                               manifest->step(), "; the folder says ", *step));
    }
    if (whole.ok()) {
      list.complete.push_back({*step, folder, *std::move(manifest)});
    } else {
      list.damaged.push_back({*step, folder, whole});
    }
  }
  const auto by_step = [](const auto& a, const auto& b) { return a.step < b.step; };
  std::sort(list.complete.begin(), list.complete.end(), by_step);
  std::sort(list.damaged.begin(), list.damaged.end(), by_step);
  return list;
}

absl::StatusOr<std::optional<CheckpointEntry>> NewestCheckpoint(const std::string& directory) {
  auto list = ListCheckpoints(directory);
  if (!list.ok()) return list.status();
  if (list->complete.empty()) return std::optional<CheckpointEntry>();
  return std::optional<CheckpointEntry>(std::move(list->complete.back()));
}

absl::Status RemoveCheckpoint(const std::string& folder, FileSystem& files) {
  const std::string removed = absl::StrCat(folder, "/", kRemovedName);
  auto manifest = ReadManifest(folder, files);
  absl::Status s;
  if (manifest.ok()) {
    const std::string path = absl::StrCat(folder, "/", kManifestName);
    if (const int renamed = files.Rename(path, removed); renamed < 0) {
      return PlainFileError(-renamed, "rename", path);
    }
    s = SyncPlainFolder(folder, files);
  } else if (absl::IsNotFound(manifest.status())) {
    manifest = ReadRemovedManifest(folder, files);
    if (absl::IsNotFound(manifest.status())) return absl::OkStatus();
  }
  if (!manifest.ok()) return manifest.status();
  for (const CheckpointFile& file : manifest->files()) {
    if (s.ok()) s = RemovePlainFile(absl::StrCat(folder, "/", file.name()), files);
  }
  if (s.ok()) s = RemovePlainFile(removed, files);
  if (s.ok()) files.RemoveFolder(folder);  // stays where something else is in it
  return s;
}

}  // namespace strata
