#include "worker/data/files/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

absl::Status Damaged(absl::string_view name, absl::string_view where, uint64_t at,
                     absl::string_view kind, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(name, " is damaged ", where, " byte ", at, ": ", why,
                                          " (", kind, "); fetch or compress it again"));
}

absl::Status CutOff(absl::string_view name, uint64_t at, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, " is cut off: it ends at byte ", at, " within a ",
                                          what, "; fetch or compress it again"));
}

class GzipDecompressor : public Decompressor {
 public:
  explicit GzipDecompressor(std::string name) : name_(std::move(name)), piece_(kPieceBytes) {
    constexpr int kWindowBits = 15;
    constexpr int kGzipOnly = 16;
    usable_ = inflateInit2(&stream_, kWindowBits + kGzipOnly) == Z_OK;
  }
  ~GzipDecompressor() override { inflateEnd(&stream_); }

  absl::Status Push(absl::string_view input, Sink sink) override {
    if (!usable_) return absl::ResourceExhaustedError(absl::StrCat(name_, ": no memory for zlib"));
    constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
    while (!input.empty()) {
      const absl::string_view part = input.substr(0, kMost);
      if (absl::Status s = PushPart(part, sink); !s.ok()) return s;
      input.remove_prefix(part.size());
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    return in_member_ ? CutOff(name_, read_, "gzip member") : absl::OkStatus();
  }

 private:
  absl::Status PushPart(absl::string_view part, Sink sink) {
    // zlib does not write through next_in.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream_.avail_in = static_cast<uInt>(part.size());
    bool full = false;  // the last piece was filled: more may be waiting inside
    while (stream_.avail_in > 0 || full) {
      if (!in_member_) {
        inflateReset(&stream_);
        in_member_ = true;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      const uInt had = stream_.avail_in;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      read_ += had - stream_.avail_in;
      const size_t made = piece_.size() - stream_.avail_out;
      if (made > 0) {
        if (absl::Status s = sink({piece_.data(), made}); !s.ok()) return s;
      }
      full = stream_.avail_out == 0;
      if (result == Z_STREAM_END) {
        in_member_ = false;
        full = false;
      } else if (result == Z_BUF_ERROR) {
        break;  // nothing to do without more input
      } else if (result != Z_OK) {
        return Damaged(name_, "at", read_, "gzip",
                       result == Z_MEM_ERROR    ? "no memory for zlib"
                       : stream_.msg != nullptr ? stream_.msg
                       : result == Z_NEED_DICT  ? "it needs a dictionary"
                                                : "unknown error of zlib");
      }
    }
    return absl::OkStatus();
  }

  const std::string name_;
  std::vector<char> piece_;
  z_stream stream_{};
  bool usable_ = false;
  bool in_member_ = false;
  uint64_t read_ = 0;
};

class ZstdDecompressor : public Decompressor {
 public:
  explicit ZstdDecompressor(std::string name)
      : name_(std::move(name)), piece_(kPieceBytes), context_(ZSTD_createDCtx()) {}
  ~ZstdDecompressor() override { ZSTD_freeDCtx(context_); }

  absl::Status Push(absl::string_view input, Sink sink) override {
    if (context_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(name_, ": no memory for zstd"));
    }
    for (; !input.empty(); input.remove_prefix(std::min(kSliceBytes, input.size()))) {
      if (absl::Status s = PushSlice(input.substr(0, kSliceBytes), sink); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    return in_frame_ ? CutOff(name_, read_, "zstd frame") : absl::OkStatus();
  }

 private:
  // zstd does not say where in its input an error lies: so it gets little at a time.
  static constexpr size_t kSliceBytes = 16 << 10;

  absl::Status PushSlice(absl::string_view slice, Sink sink) {
    ZSTD_inBuffer in = {slice.data(), slice.size(), 0};
    bool full = false;
    while (in.pos < slice.size() || full) {
      // A frame that comes whole is read by other code of zstd, which finds other damage. So none
      // does: its first byte comes alone.
      in.size = in_frame_ ? slice.size() : in.pos + 1;
      ZSTD_outBuffer out = {piece_.data(), piece_.size(), 0};
      const size_t result = ZSTD_decompressStream(context_, &out, &in);
      if (ZSTD_isError(result)) {
        return Damaged(name_, "near", read_ + in.pos, "zstd", ZSTD_getErrorName(result));
      }
      if (out.pos > 0) {
        if (absl::Status s = sink({piece_.data(), out.pos}); !s.ok()) return s;
      }
      in_frame_ = result != 0;
      full = in_frame_ && out.pos == out.size;
    }
    read_ += slice.size();
    return absl::OkStatus();
  }

  const std::string name_;
  std::vector<char> piece_;
  ZSTD_DCtx* const context_;
  bool in_frame_ = false;
  uint64_t read_ = 0;
};

}  // namespace

Compression CompressionOf(absl::string_view start) {
  if (absl::StartsWith(start, "\x1f\x8b")) return Compression::kGzip;
  if (start.size() < kCompressionMagicBytes) return Compression::kNone;
  const auto byte = [start](size_t i) { return static_cast<unsigned char>(start[i]); };
  const bool frame = std::memcmp(start.data(), "\x28\xb5\x2f\xfd", 4) == 0;
  const bool skippable =
      (byte(0) & 0xf0) == 0x50 && byte(1) == 0x2a && byte(2) == 0x4d && byte(3) == 0x18;
  return frame || skippable ? Compression::kZstd : Compression::kNone;
}

absl::string_view CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    case Compression::kNone:
      return "no";
  }
  return "no";
}

absl::StatusOr<Compression> CompressionOfFile(absl::string_view name, absl::string_view start) {
  const Compression found = CompressionOf(start);
  const Compression named = absl::EndsWith(name, ".gz")    ? Compression::kGzip
                            : absl::EndsWith(name, ".zst") ? Compression::kZstd
                                                           : Compression::kNone;
  if (start.empty() || named == Compression::kNone || found != Compression::kNone) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("input file ", name, " does not begin as ", CompressionName(named),
                   " does; is it complete? (A plain file must not be named .gz or .zst)"));
}

std::unique_ptr<Decompressor> Decompressor::Make(Compression compression, std::string name) {
  if (compression == Compression::kGzip) return std::make_unique<GzipDecompressor>(std::move(name));
  return std::make_unique<ZstdDecompressor>(std::move(name));
}

}  // namespace strata
