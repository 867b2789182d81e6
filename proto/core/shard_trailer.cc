#include "proto/core/shard_trailer.h"

#include <bit>
#include <cstring>

#include "proto/core/checksum.h"

namespace strata {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kMagic = 0x444e454152545353ull;  // "SSTRAEND"
constexpr size_t kFooterOffset = 8;
constexpr size_t kFileBytes = 16;
constexpr size_t kZero = 24;
constexpr size_t kCrc = 28;
static_assert(kCrc + sizeof(uint32_t) == kShardTrailerBytes);

template <typename T>
T Read(const uint8_t* in) {
  T value;
  std::memcpy(&value, in, sizeof value);
  return value;
}

}  // namespace

void EncodeShardTrailer(const ShardTrailer& trailer, uint8_t* out) {
  std::memcpy(out, &kMagic, sizeof kMagic);
  std::memcpy(out + kFooterOffset, &trailer.footer_offset, sizeof trailer.footer_offset);
  std::memcpy(out + kFileBytes, &trailer.file_bytes, sizeof trailer.file_bytes);
  std::memset(out + kZero, 0, kCrc - kZero);
  const uint32_t crc = Crc32c({out, kCrc});
  std::memcpy(out + kCrc, &crc, sizeof crc);
}

std::optional<ShardTrailer> DecodeShardTrailer(const uint8_t* in) {
  if (Read<uint64_t>(in) != kMagic) return std::nullopt;
  if (Read<uint32_t>(in + kCrc) != Crc32c({in, kCrc})) return std::nullopt;
  return ShardTrailer{.footer_offset = Read<uint64_t>(in + kFooterOffset),
                      .file_bytes = Read<uint64_t>(in + kFileBytes)};
}

}  // namespace strata
