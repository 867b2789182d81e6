// The header of a shard file without tables (storage/FORMAT.md), for tests of who reads no more.
#ifndef STRATA_TESTS_SHARD_HEADER_H_
#define STRATA_TESTS_SHARD_HEADER_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "proto/core/checksum.h"
#include "proto/core/uid.h"

namespace strata {

inline std::string ShardHeader(const FileWriter& writer) {
  std::string text(168, '\0');
  const auto put = [&text](size_t at, auto value) {
    std::memcpy(text.data() + at, &value, sizeof value);
  };
  std::memcpy(text.data(), "STRASHRD", 8);
  put(8, uint32_t{2});
  put(12, uint32_t{2});
  put(24, writer.generation.value);
  put(72, writer.identity.cluster.high);
  put(80, writer.identity.cluster.low);
  put(88, writer.identity.job.high);
  put(96, writer.identity.job.low);
  put(104, writer.cut);
  put(164, Crc32c({reinterpret_cast<const uint8_t*>(text.data()), 164}));
  return text;
}

}  // namespace strata

#endif  // STRATA_TESTS_SHARD_HEADER_H_
