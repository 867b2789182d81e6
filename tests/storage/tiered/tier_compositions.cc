#include "tests/storage/tiered/tier_compositions.h"

#include "storage/rocks/tier.h"
#include "storage/row_file/tier.h"

namespace strata::storage {
namespace {

TierComposition RocksDb(const std::string& name, RocksTierOptions::Io io) {
  return {.name = name, .open = [io](const std::string& directory, OpenMode mode) {
            return OpenRocksTier({.directory = directory,
                                  .partitions = 256,
                                  .mode = mode,
                                  .memtable_bytes = 256 << 10,
                                  .io = io});
          }};
}

TierComposition RowFile(const std::string& name, RowFileTierOptions::Reads reads) {
  return {.name = name, .open = [reads](const std::string& directory, OpenMode mode) {
            return OpenRowFileTier({.directory = directory,
                                    .partitions = 256,
                                    .mode = mode,
                                    .memtable_bytes = 256 << 10,
                                    .reads = reads});
          }};
}

}  // namespace

std::vector<TierComposition> TierCompositions() {
  using Reads = RowFileTierOptions::Reads;
  using Io = RocksTierOptions::Io;
  TierComposition watched = RowFile("watched row file", Reads::kBest);
  watched.watched = true;
  return {watched, RowFile("row file", Reads::kBest),
          RowFile("row file read by threads", Reads::kThreads),
          RocksDb("RocksDB through the page cache", Io::kBuffered),
          RocksDb("RocksDB around the page cache", Io::kDirect)};
}

}  // namespace strata::storage
