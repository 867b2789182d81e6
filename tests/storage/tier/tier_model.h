// A RowTier beside maps: what it must hold.
#ifndef STRATA_TESTS_STORAGE_TIER_TIER_MODEL_H_
#define STRATA_TESTS_STORAGE_TIER_TIER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

using Bytes = std::vector<uint8_t>;
using Rows = std::map<uint64_t, Bytes>;  // by position

absl::Status WriteAll(RowTier& tier, TableId table, const Rows& rows, size_t row_bytes);
absl::StatusOr<Rows> ReadAll(RowTier& tier, TableId table, const std::set<uint64_t>& wanted,
                             size_t row_bytes);
absl::StatusOr<Rows> Scan(RowTier& tier, TableId table, uint64_t first, uint64_t last,
                          size_t row_bytes);

// Tables of several row sizes under random operations. One thread; whatever differs fails the test.
class TierModel {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<RowTier>>(const std::string& directory,
                                                                      OpenMode)>;
  // The tier has so many partitions.
  TierModel(Open open, std::string directory, uint32_t partitions, uint64_t seed);

  // Returns how many rows were handled.
  size_t Step();
  void CheckAll();

 private:
  static constexpr size_t kTables = 3;
  static constexpr uint32_t kIds[kTables] = {0, 7, 8};
  static constexpr size_t kRowBytes[kTables] = {12, 128, 2500};

  void OpenTier(OpenMode mode);
  // Few enough that rows are met again.
  uint64_t AnyPosition() { return (random_() % 4000) * 0x000ffffbce421234ull; }
  std::set<uint64_t> AnyPositions();
  size_t Write(size_t t);
  size_t Delete(size_t t);
  size_t CheckRead(size_t t);
  size_t CheckScan(size_t t);
  void Drop();

  const Open open_;
  const std::string directory_;
  const uint32_t partitions_;
  std::mt19937_64 random_;
  std::unique_ptr<RowTier> tier_;
  Rows rows_[kTables];
};

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_TIER_TIER_MODEL_H_
