// libFuzzer target of the reader of base images and checkpoint files: whatever the bytes, no crash,
// and what Verify accepts all other calls read. The first byte says whether the header's and the
// trailer's checksums are put right, so that what lies behind them is reached.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "proto/core/checksum.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::storage {
namespace {

void PutCrc(std::vector<uint8_t>& bytes, size_t begin, size_t end) {
  const uint32_t crc = Crc32c({bytes.data() + begin, end - begin});
  std::memcpy(bytes.data() + end, &crc, sizeof crc);
}

void PutRight(std::vector<uint8_t>& bytes) {
  constexpr size_t kTrailer = 32;
  uint32_t tables = 0;
  constexpr size_t kWithoutTables = 168;
  if (bytes.size() < kWithoutTables + kTrailer) return;
  std::memcpy(&tables, bytes.data() + 64, sizeof tables);
  const size_t header = kWithoutTables + size_t{tables % 8} * 16;
  if (bytes.size() < header + kTrailer) return;
  PutCrc(bytes, 0, header - 4);
  PutCrc(bytes, bytes.size() - kTrailer, bytes.size() - 4);
}

void ReadAll(const ShardFileReader& reader, bool must_read) {
  const auto check = [&](const absl::Status& s) {
    if (!must_read || s.ok()) return;
    std::fprintf(stderr, "verified, but: %s\n", s.ToString().c_str());
    std::abort();
  };
  const PartitionRange all = reader.header().partitions;
  for (const TableShape& table : reader.header().tables) {
    size_t sum = 0;
    check(reader.ReadRows(table.id, all, [&](std::span<const Position> p, const uint8_t* rows) {
      for (size_t i = 0; i < p.size() * table.row_bytes(); ++i) sum += rows[i];
      return absl::OkStatus();
    }));
    check(reader.ReadPreImages(table.id, all, [&](const PreImages& images) {
      sum += images.positions.size() + images.weights.size();
      return absl::OkStatus();
    }));
    check(reader.ReadErased(table.id, all, [&](std::span<const Position> p) {
      sum += p.size();
      return absl::OkStatus();
    }));
  }
  check(reader.ReadSections(all, [](const Section&) { return absl::OkStatus(); }));
}

}  // namespace
}  // namespace strata::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::storage::ShardFileReader;
  if (size == 0) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (data[0] % 2 == 1) strata::storage::PutRight(bytes);
  const int file = memfd_create("shard", 0);
  if (file < 0 || write(file, bytes.data(), bytes.size()) < 0) std::abort();
  auto reader = ShardFileReader::Open("/proc/self/fd/" + std::to_string(file));
  if (reader.ok()) strata::storage::ReadAll(**reader, (*reader)->Verify().ok());
  close(file);
  return 0;
}
