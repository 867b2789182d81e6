#include "proto/runtime/files/finished_file.h"

#include <fcntl.h>

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/shard_trailer.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

absl::Status CheckOne(const std::string& path, uint64_t wanted, FileSystem& files) {
  const auto lost = [&path](const auto&... why) {
    return absl::DataLossError(absl::StrCat("checkpoint file ", path, " ", why...));
  };
  const auto bytes = FileBytes(path, files);
  if (absl::IsNotFound(bytes.status())) return lost("is not there, though a server wrote it");
  if (!bytes.ok()) return bytes.status();
  if (*bytes != wanted) {
    return lost("has ", *bytes, " bytes; the server that wrote it says ", wanted);
  }
  if (*bytes < kShardTrailerBytes) return lost("is cut off: it has ", *bytes, " bytes");
  std::array<uint8_t, kShardTrailerBytes> end;
  const PlainFile file(path, O_RDONLY, files);
  if (!file.opened().ok()) return file.opened();
  const auto read = file.Read(end, *bytes - end.size());
  if (!read.ok()) return read.status();
  const std::optional<ShardTrailer> trailer =
      *read == end.size() ? DecodeShardTrailer(end.data()) : std::nullopt;
  if (!trailer) return lost("does not end as a finished file does");
  if (trailer->file_bytes != *bytes || trailer->footer_offset >= *bytes) {
    return lost("ends as one of ", trailer->file_bytes, " bytes; it has ", *bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFinished(const std::string& folder, const Manifest& manifest, FileSystem& files) {
  for (const CheckpointFile& file : manifest.files()) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    if (absl::Status s = CheckOne(path, file.bytes(), files); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace strata
