#include "proto/core/shard_head.h"

#include <bit>
#include <cstring>

#include "proto/core/checksum.h"

namespace strata {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename Number>
Number At(std::span<const uint8_t> bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

constexpr size_t kLeast = 168;     // without tables
constexpr size_t kOfATable = 16;   // bytes
constexpr uint32_t kMost = 65536;  // tables

}  // namespace

std::optional<FileWriter> DecodeShardWriter(std::span<const uint8_t> start) {
  if (start.size() < kLeast || At<uint64_t>(start, 0) != kShardFileMagic ||
      At<uint32_t>(start, 8) != kShardFileVersion) {
    return std::nullopt;
  }
  const auto tables = At<uint32_t>(start, 64);
  const size_t bytes = kLeast + kOfATable * size_t{tables};
  if (tables > kMost || bytes > start.size()) return std::nullopt;
  if (Crc32c(start.first(bytes - 4)) != At<uint32_t>(start, bytes - 4)) return std::nullopt;
  FileWriter writer;
  writer.generation = Generation(At<uint64_t>(start, 24));
  writer.identity.cluster = {At<uint64_t>(start, 72), At<uint64_t>(start, 80)};
  writer.identity.job = {At<uint64_t>(start, 88), At<uint64_t>(start, 96)};
  writer.cut = At<uint64_t>(start, 104);
  return writer;
}

}  // namespace strata
