#include "storage/log/opening.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/folders.h"
#include "storage/io/file_io.h"
#include "storage/log/scan.h"

namespace strata::storage {
namespace {

using log::kSegmentHeaderBytes;
using log::SegmentHeader;

absl::StatusOr<std::map<uint64_t, uint64_t>> ListSegments(const UpdateLogOptions& options) {
  const auto names = ListFolder(options.directory, *options.files);
  if (!names.ok()) return names.status();
  std::map<uint64_t, uint64_t> segments;
  for (const std::string& name : *names) {
    if (const auto number = log::ParseSegmentName(name)) segments[*number] = 0;
  }
  return segments;
}

// Fills in the segment's size, and corrects that of the one before it by what its header says.
absl::Status CheckLink(const UpdateLogOptions& options, uint64_t segment, LogTail& tail) {
  const std::string path = SegmentPath(options.directory, segment);
  absl::StatusOr<File> file = File::Open(path, O_RDONLY, *options.files);
  if (!file.ok()) return file.status();
  absl::StatusOr<uint64_t> size = file->Size();
  if (!size.ok()) return size.status();
  tail.sizes[segment] = *size;
  std::array<uint8_t, kSegmentHeaderBytes> raw{};
  std::optional<SegmentHeader> header;
  const std::span<uint8_t> start = std::span(raw).first(std::min<uint64_t>(*size, raw.size()));
  if (absl::Status s = file->ReadAt(0, start); !s.ok()) return s;
  if (const auto version = log::OldVersion(start)) {
    return absl::UnimplementedError(
        absl::StrCat("segment ", path, " of an update log has version ", *version,
                     "; this program reads version ", log::kVersion,
                     "; end the job with the version of strata that began it"));
  }
  if (start.size() == raw.size()) header = log::DecodeSegmentHeader(raw.data());
  if (!header || header->segment != segment) {
    if (segment == tail.sizes.rbegin()->first) return absl::OkStatus();  // RecoverLast decides
    return DamagedFile(path, 0, "the segment's header does not check");
  }
  if (!(header->owner == options.owner)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "segment ", path, " of an update log is of ", Describe(header->owner.identity),
        ", generation ", header->owner.generation.value, ", not of ",
        Describe(options.owner.identity), ", generation ", options.owner.generation.value));
  }
  const auto before = tail.sizes.find(segment - 1);
  if (before == tail.sizes.end()) return absl::OkStatus();
  if (header->previous_bytes > before->second) {
    return DamagedFile(SegmentPath(options.directory, segment - 1), before->second,
                       absl::StrCat("the segment has ", before->second, " bytes but had ",
                                    header->previous_bytes));
  }
  before->second = header->previous_bytes;
  return absl::OkStatus();
}

// Every segment up to the last must be there, with its header and at least as long as the next one
// says; what lies behind that length was never acknowledged.
absl::Status CheckChain(const UpdateLogOptions& options, LogTail& tail) {
  uint64_t expected = tail.sizes.begin()->first;
  for (const auto& [segment, unknown] : tail.sizes) {
    if (segment != expected) {
      return DamagedFile(SegmentPath(options.directory, expected), 0,
                         "this segment of the update log is missing");
    }
    if (absl::Status s = CheckLink(options, segment, tail); !s.ok()) return s;
    ++expected;
  }
  return absl::OkStatus();
}

absl::Status RecoverLast(const UpdateLogOptions& options, SegmentLoader& loader, LogTail& tail) {
  const uint64_t segment = tail.sizes.rbegin()->first;
  const std::string path = SegmentPath(options.directory, segment);
  log::TailScan scan;
  uint64_t size = 0;
  {
    auto loaded = loader.Load(path, "");
    if (!loaded.ok()) return loaded.status();
    scan = log::ScanTail(segment, (*loaded)->bytes());
    size = (*loaded)->bytes().size();
  }
  if (scan.intact) {
    return DamagedFile(path, scan.end,
                       absl::StrCat("the update log is damaged here, but a record at offset ",
                                    *scan.intact, " is intact: committed updates are lost"));
  }
  absl::StatusOr<SegmentWriter> writer = SegmentWriter::Open(path, scan.end, *options.files);
  if (!writer.ok()) return writer.status();
  if (scan.end < size) {
    if (absl::Status s = writer->Trim(); !s.ok()) return s;
    tail.torn_bytes = scan.torn_bytes;
  }
  if (!scan.header) {
    const auto before = tail.sizes.find(segment - 1);
    scan.header = SegmentHeader{.segment = segment,
                                .previous_bytes = before == tail.sizes.end() ? 0 : before->second,
                                .owner = options.owner};
    if (absl::Status s = AppendSegmentHeader(*writer, *scan.header); !s.ok()) return s;
  }
  if (options.durability == LogDurability::kSynced) {
    absl::Status s = writer->Sync();
    if (s.ok()) s = SyncFolder(options.directory, *options.files);
    if (!s.ok()) {
      writer->Forget();  // the next Open is to see what the disk has
      return s;
    }
  }
  tail.header = *scan.header;
  tail.writer = *std::move(writer);
  tail.sizes[segment] = tail.writer.end();
  return absl::OkStatus();
}

}  // namespace

std::string SegmentPath(const std::string& directory, uint64_t segment) {
  return absl::StrCat(directory, "/", log::SegmentName(segment));
}

absl::StatusOr<LogTail> OpenSegments(const UpdateLogOptions& options, SegmentLoader& loader) {
  LogTail tail;
  absl::StatusOr<std::map<uint64_t, uint64_t>> segments = ListSegments(options);
  if (!segments.ok()) return segments.status();
  tail.sizes = *std::move(segments);
  if (tail.sizes.empty()) return tail;
  if (absl::Status s = CheckChain(options, tail); !s.ok()) return s;
  if (absl::Status s = RecoverLast(options, loader, tail); !s.ok()) return s;
  return tail;
}

// At `synced` a header is durable before its segment has a record: where records lie behind one
// that is missing, it is damaged.
absl::Status AppendSegmentHeader(SegmentWriter& writer, const SegmentHeader& header) {
  std::array<uint8_t, log::kBlockAlignment> block{};
  log::EncodeSegmentHeader(header, block.data());
  iovec part = {block.data(), log::FirstRecord(header.alignment)};
  return writer.Append({&part, 1});
}

}  // namespace strata::storage
