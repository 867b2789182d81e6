#include "tools/cluster/export/writer.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"

namespace strata {

ExportWriter::ExportWriter(const ExportPlan* plan, const ExportFolder* folder, FileSystem& system)
    : plan_(plan), folder_(folder), system_(system) {}

ExportWriter::~ExportWriter() = default;

absl::Status ExportWriter::Allocate() {
  for (const ExportFile& planned : plan_->files) {
    auto file = storage::File::Open(folder_->PartialPath(planned.name),
                                    O_WRONLY | O_CREAT | O_TRUNC, system_);
    if (!file.ok()) return file.status();
    if (fallocate(file->fd(), 0, 0, static_cast<off_t>(planned.bytes)) != 0) {
      if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
        return ErrnoStatus(errno, absl::StrCat("keep ", planned.bytes, " bytes for"), file->path());
      }
      // The file system cannot do it: a full disk is found later.
      if (absl::Status s = file->Truncate(planned.bytes); !s.ok()) return s;
    }
    iovec header = {const_cast<char*>(planned.header.data()), planned.header.size()};
    if (absl::Status s = file->WriteAt(0, {&header, 1}); !s.ok()) return s;
    if (absl::Status s = file->Sync(); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ExportWriter::Begin(const ExportBlock& block) {
  block_ = &block;
  rows_ = 0;
  sinks_.clear();
  files_.clear();
  for (const ExportArray& array : block.arrays) {
    if (files_.count(array.file) == 0) {
      auto file = storage::File::Open(folder_->PartialPath(plan_->files[array.file].name), O_WRONLY,
                                      system_);
      if (!file.ok()) return file.status();
      files_.emplace(array.file, *std::move(file));
    }
    Sink sink;
    sink.array = &array;
    sink.file = &files_.at(array.file);
    sink.at = array.offset;
    sink.left = array.bytes;
    sink.buffer.reserve(kBufferBytes);
    sinks_.push_back(std::move(sink));
  }
  return absl::OkStatus();
}

absl::Status ExportWriter::Flush(Sink& sink) {
  sink.crc = Crc32cExtend(sink.crc, sink.buffer);
  iovec part = {sink.buffer.data(), sink.buffer.size()};
  if (absl::Status s = sink.file->WriteAt(sink.at, {&part, 1}); !s.ok()) return s;
  sink.at += sink.buffer.size();
  sink.buffer.clear();
  return absl::OkStatus();
}

absl::Status ExportWriter::Append(Sink& sink, const uint8_t* bytes, size_t count) {
  count = static_cast<size_t>(std::min<uint64_t>(count, sink.left));
  sink.left -= count;
  if (sink.buffer.size() + count > kBufferBytes) {
    if (absl::Status s = Flush(sink); !s.ok()) return s;
  }
  sink.buffer.insert(sink.buffer.end(), bytes, bytes + count);
  return absl::OkStatus();
}

absl::Status ExportWriter::AddRow(Key key, const uint8_t* row) {
  ++rows_;
  for (Sink& sink : sinks_) {
    const uint8_t* bytes = row + sink.array->row_offset;
    if (sink.array->is_key) bytes = reinterpret_cast<const uint8_t*>(&key.value);
    if (absl::Status s = Append(sink, bytes, sink.array->row_bytes); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ExportWriter::End() {
  for (Sink& sink : sinks_) {
    if (absl::Status s = Flush(sink); !s.ok()) return s;
    if (sink.left != 0 || rows_ != block_->rows) {
      return absl::InternalError(absl::StrCat(sink.array->name, ": ", rows_, " rows came, ",
                                              block_->rows, " were planned"));
    }
    checksums_[sink.array->name] = sink.crc;
  }
  for (const auto& [index, file] : files_) {
    if (absl::Status s = file.Sync(); !s.ok()) return s;
  }
  sinks_.clear();
  files_.clear();
  return absl::OkStatus();
}

}  // namespace strata
