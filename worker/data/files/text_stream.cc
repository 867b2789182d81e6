#include "worker/data/files/text_stream.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace strata {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
// Of compressed data at a time, which bounds how much text comes at once.
constexpr size_t kCompressedBytes = size_t{1} << 10;
// How soon a cancellation is seen while nothing comes.
constexpr int kPollMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<TextStream>> TextStream::Open(const std::string& path,
                                                             int standard_input) {
  if (path == "-") {
    return std::unique_ptr<TextStream>(
        new TextStream(NameForMessages(path), nullptr, standard_input));
  }
  absl::StatusOr<std::unique_ptr<DataFile>> file = DataFile::Open(path);
  if (!file.ok()) return file.status();
  std::string name = (*file)->path();
  return std::unique_ptr<TextStream>(new TextStream(std::move(name), *std::move(file), -1));
}

bool TextStream::ready() const {
  if (file_ != nullptr || ended_ || raw_at_ < raw_.size()) return true;
  pollfd input = {fd_, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

absl::Status TextStream::FillFromFile() {
  const size_t size = static_cast<size_t>(std::min<uint64_t>(kReadBytes, file_->size() - file_at_));
  raw_.resize(size);
  if (absl::Status s = file_->Read(file_at_, size, raw_.data()); !s.ok()) return s;
  file_at_ += size;
  return absl::OkStatus();
}

absl::Status TextStream::FillFromDescriptor(const Cancelled& cancelled) {
  raw_.resize(kReadBytes);
  while (true) {
    if (absl::Status s = StillWanted(cancelled, name_); !s.ok()) return s;
    pollfd input = {fd_, POLLIN, 0};
    const int events = poll(&input, 1, kPollMs);
    if (events == 0 || (events < 0 && errno == EINTR)) continue;
    const ssize_t got = read(fd_, raw_.data(), raw_.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) {
      const int error = errno;
      raw_.clear();
      return absl::InternalError(absl::StrCat(name_, " cannot be read: ", std::strerror(error)));
    }
    raw_.resize(static_cast<size_t>(got));
    return absl::OkStatus();
  }
}

absl::Status TextStream::Fill(const Cancelled& cancelled) {
  raw_at_ = 0;
  if (absl::Status s = StillWanted(cancelled, name_); !s.ok()) return s;
  return file_ != nullptr ? FillFromFile() : FillFromDescriptor(cancelled);
}

absl::Status TextStream::Begin(bool last) {
  start_.append(raw_);
  // No compressed data have a newline among the bytes that decide.
  if (!last && start_.size() < kCompressionMagicBytes && start_.find('\n') == std::string::npos) {
    raw_.clear();
    return absl::OkStatus();
  }
  const auto compression =
      CompressionOfFile(name_, absl::string_view(start_).substr(0, kCompressionMagicBytes));
  if (!compression.ok()) return compression.status();
  if (*compression != Compression::kNone) {
    decompressor_ = Decompressor::Make(*compression, absl::StrCat("input file ", name_));
  }
  begun_ = true;
  raw_ = std::move(start_);
  return absl::OkStatus();
}

absl::Status TextStream::Read(const Cancelled& cancelled, std::string* out) {
  if (raw_at_ == raw_.size()) {
    if (absl::Status s = Fill(cancelled); !s.ok()) return s;
    ended_ = raw_.empty();
    if (!begun_) {
      if (absl::Status s = Begin(ended_); !s.ok()) return s;
    }
  }
  absl::string_view piece = absl::string_view(raw_).substr(raw_at_);
  if (decompressor_ == nullptr) {
    out->append(piece.data(), piece.size());
    raw_at_ = raw_.size();
    return absl::OkStatus();
  }
  piece = piece.substr(0, kCompressedBytes);
  raw_at_ += piece.size();
  absl::Status s = decompressor_->Push(piece, [&](absl::string_view text) {
    out->append(text.data(), text.size());
    return absl::OkStatus();
  });
  if (s.ok() && ended_) s = decompressor_->Finish();
  return s;
}

}  // namespace strata
