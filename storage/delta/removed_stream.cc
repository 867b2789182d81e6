#include "storage/delta/removed_stream.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/folders.h"

namespace strata::storage {
namespace {

// Whose choice the place is: a commit waits, or a cut fails, with these words.
absl::Status OfField(const absl::Status& s) {
  if (s.ok()) return s;
  return absl::Status(s.code(), absl::StrCat("spec.output.removed: ", s.message()));
}

}  // namespace

std::string RemovedFileName(const RemovedName& name) {
  return absl::StrFormat("removed-%05d-%012d-%05d.strata", name.generation.value, name.from.value,
                         name.shard.value);
}

std::optional<RemovedName> ParseRemovedName(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "removed-") || !absl::ConsumeSuffix(&text, ".strata")) return {};
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  RemovedName name;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &name.generation.value) ||
      !absl::SimpleAtoi(parts[1], &name.from.value) ||
      !absl::SimpleAtoi(parts[2], &name.shard.value)) {
    return {};
  }
  return name;
}

absl::StatusOr<std::vector<RemovedName>> ListRemoved(const std::string& folder) {
  std::vector<RemovedName> names;
  const auto listed = ListFolder(folder);
  if (absl::IsNotFound(listed.status())) return names;
  if (!listed.ok()) return listed.status();
  for (const std::string& text : *listed) {
    if (auto name = ParseRemovedName(text)) names.push_back(*name);
  }
  std::sort(names.begin(), names.end(), [](const RemovedName& a, const RemovedName& b) {
    return std::tie(a.generation, a.from, a.shard) < std::tie(b.generation, b.from, b.shard);
  });
  return names;
}

RemovedWriter::RemovedWriter(Options options)
    : options_(std::move(options)),
      path_(absl::StrCat(options_.folder, "/", RemovedFileName(options_.name))) {}

absl::Status RemovedWriter::Open() {
  if (absl::Status s = MakeFolder(options_.folder); !s.ok()) return s;
  auto file = File::Open(path_, O_RDWR | O_CREAT,
                         options_.files == nullptr ? FileSystem::Kernel() : *options_.files);
  if (!file.ok()) return file.status();
  file_ = std::make_shared<const File>(*std::move(file));
  return absl::OkStatus();
}

absl::Status RemovedWriter::StartNew() {
  auto names = ListRemoved(options_.folder);
  if (!names.ok()) return names.status();
  for (const RemovedName& name : *names) {
    if (name.shard != options_.name.shard || name.Before(options_.name)) continue;
    const std::string path = absl::StrCat(options_.folder, "/", RemovedFileName(name));
    if (const auto bytes = FileBytes(path); !bytes.ok() || *bytes == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("spec.output.removed: ", path,
                     " is from another run, which was at least as far as this "
                     "one's start (step ",
                     options_.name.from.value,
                     "): give this run another folder, or move "
                     "what is there away"));
  }
  if (absl::Status s = Open(); !s.ok()) return s;
  return file_->Truncate(0);
}

absl::Status RemovedWriter::StartAt(uint64_t bytes) {
  const auto there = IsThere(path_);
  if (!there.ok()) return there.status();
  if (absl::Status s = Open(); !s.ok()) return s;
  bytes_ = durable_ = *there ? bytes : 0;
  const auto size = file_->Size();
  if (!size.ok()) return size.status();
  if (*size < bytes_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "spec.output.removed: ", path_, " has ", *size, " bytes, and had ", bytes_,
        " when the shard's last image was written: put it back whole, or move it away"));
  }
  return *size == bytes_ ? absl::OkStatus() : file_->Truncate(bytes_);
}

absl::Status RemovedWriter::MakeRoom(TableId table, uint64_t from, uint64_t to) {
  if (commit_ == nullptr) {
    DeltaHeader header;
    header.removals = true;
    header.from.step = from;
    header.to.step = to;
    header.tables = options_.tables;
    auto begun = DeltaWriter::At(file_, bytes_, header);
    if (!begun.ok()) return OfField(begun.status());
    commit_ = *std::move(begun);
  }
  static_assert(kDeltaBlockBytes / 2 + kMostAdd * 8 < kDeltaBlockBytes);
  if (table_ != table || commit_->buffered_bytes() >= kDeltaBlockBytes / 2) {
    if (absl::Status s = commit_->Flush(); !s.ok()) return OfField(s);
    table_ = table;
  }
  return absl::OkStatus();
}

void RemovedWriter::Add(TableId table, std::span<const Position> positions) {
  // No error is possible: MakeRoom has written what was in the way, and positions ascend.
  for (const Position p : positions) commit_->Delete(table, p).IgnoreError();
}

absl::Status RemovedWriter::EndCommit() {
  if (commit_ == nullptr) return absl::OkStatus();
  if (absl::Status s = Failpoint("removed.end"); !s.ok()) return s;
  const auto written = commit_->End();
  if (!written.ok()) return OfField(written.status());
  bytes_ += written->bytes;
  commit_.reset();
  table_.reset();
  return Failpoint("removed.ended");
}

absl::Status RemovedWriter::Sync() {
  if (!sync_failed_.ok()) return sync_failed_;
  FileSystem& files = options_.files == nullptr ? FileSystem::Kernel() : *options_.files;
  if (bytes_ != durable_) sync_failed_ = OfField(file_->SyncData());
  if (sync_failed_.ok() && bytes_ > 0 && !named_) {
    const auto folder = File::Open(options_.folder, O_RDONLY | O_DIRECTORY, files);
    if (!folder.ok()) return OfField(folder.status());  // a handle may be free later
    sync_failed_ = OfField(folder->Sync());
  }
  if (!sync_failed_.ok()) return sync_failed_;
  named_ |= bytes_ > 0;
  durable_ = bytes_;
  return absl::OkStatus();
}

namespace {

// One file on its way into `out`.
class FileReader {
 public:
  FileReader(const File& file, const RemovedName& name, uint64_t last, const RemovedVisitor& visit)
      : file_(file), name_(name), last_(last), visit_(visit) {}

  absl::Status Read(RemovedSummary& out);

 private:
  // Bytes of the delta; 0: the file's end cuts it off.
  absl::StatusOr<uint64_t> ReadDelta(uint64_t at, RemovedSummary& out);
  absl::Status Note(const DeltaHeader& header, uint64_t at, RemovedSummary& out) const;

  const File& file_;
  const RemovedName& name_;
  const uint64_t last_;
  const RemovedVisitor& visit_;
};

// The delta at `at` is whole and counts, or was undone.
absl::Status FileReader::Note(const DeltaHeader& header, uint64_t at, RemovedSummary& out) const {
  if (out.tables.empty()) {
    out.tables = header.tables;
    out.keys.resize(header.tables.size());
  }
  if (out.tables != header.tables) {
    return DamagedFile(file_.path(), at, "a delta of other tables than the first");
  }
  if (header.to.step > last_) {
    ++out.undone_commits;
    return absl::OkStatus();
  }
  if (out.commits++ == 0) out.first_step = header.to.step;
  out.last_step = header.to.step;
  return absl::OkStatus();
}

// First whole, then once more for `visit`, so that none counts in part and no more than a block is
// held.
absl::StatusOr<uint64_t> FileReader::ReadDelta(uint64_t at, RemovedSummary& out) {
  uint64_t bytes = 0;
  for (const bool deliver : {false, true}) {
    auto reader = DeltaReader::From(
        [&](uint64_t offset, std::span<uint8_t> to) { return file_.ReadAt(at + offset, to); },
        out.file_bytes - at, absl::StrCat(file_.path(), ", delta at ", at), DeltaTail::kAnything);
    if (!reader.ok()) return reader.status();
    const DeltaHeader& header = (*reader)->header();
    if (!header.removals) return DamagedFile(file_.path(), at, "not a delta of removals");
    if (deliver) {
      if (absl::Status s = Note(header, at, out); !s.ok()) return s;
      if (header.to.step > last_) break;
    }
    DeltaBlock block;
    absl::StatusOr<bool> more = true;
    while ((more = (*reader)->Next(block)).ok() && *more) {
      if (block.type != DeltaBlockType::kDeletes) {
        return DamagedFile(file_.path(), at, "a delta of removals that has rows");
      }
      if (!deliver) continue;
      out.keys[static_cast<size_t>(header.Find(block.table) - header.tables.data())] +=
          block.keys.size();
      absl::Status s = visit_({name_, header.to.step, block.table, block.keys});
      if (!s.ok()) return s;
    }
    if (!more.ok() && (*reader)->cut_off()) return 0;
    if (!more.ok()) return more.status();
    bytes = (*reader)->summary().bytes;
  }
  return bytes;
}

absl::Status FileReader::Read(RemovedSummary& out) {
  const auto size = file_.Size();
  if (!size.ok()) return size.status();
  out.file_bytes = *size;
  std::optional<size_t> header_bytes;
  for (uint64_t& at = out.whole_bytes; at < *size;) {
    uint8_t fixed[kDeltaFixedBytes];
    if (*size - at < sizeof fixed) break;
    if (absl::Status s = file_.ReadAt(at, fixed); !s.ok()) return s;
    const auto header = DeltaHeaderBytes(fixed);
    if (!header || (header_bytes && header != header_bytes)) {
      return DamagedFile(file_.path(), at, "no delta of this file begins here");
    }
    header_bytes = header;
    if (*size - at < *header) {
      std::vector<uint8_t> rest(*size - at);
      if (absl::Status s = file_.ReadAt(at, rest); !s.ok()) return s;
      if (MayBeginDeltaHeader(rest)) break;
      return DamagedFile(file_.path(), at, "a header without an end");
    }
    const auto bytes = ReadDelta(at, out);
    if (!bytes.ok()) return bytes.status();
    if (*bytes == 0) break;
    at += *bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RemovedSummary> ReadRemovedFile(const std::string& path, const RemovedName& name,
                                               uint64_t last, const RemovedVisitor& visit) {
  auto file = File::Open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  RemovedSummary summary;
  if (absl::Status s = FileReader(*file, name, last, visit).Read(summary); !s.ok()) return s;
  return summary;
}

uint64_t LastThatCounts(const RemovedName& name, std::span<const RemovedName> names) {
  uint64_t last = ~uint64_t{0};
  for (const RemovedName& later : names) {
    if (name.Before(later)) last = std::min(last, later.from.value);
  }
  return last;
}

absl::Status ReadRemoved(const std::string& folder, const RemovedVisitor& visit) {
  auto names = ListRemoved(folder);
  if (!names.ok()) return names.status();
  for (const RemovedName& name : *names) {
    auto read = ReadRemovedFile(absl::StrCat(folder, "/", RemovedFileName(name)), name,
                                LastThatCounts(name, *names), visit);
    if (!read.ok()) return read.status();
  }
  return absl::OkStatus();
}

}  // namespace strata::storage
