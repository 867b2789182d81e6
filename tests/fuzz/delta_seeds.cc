#include "tests/fuzz/delta_seeds.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "absl/status/status.h"
#include "storage/delta/file.h"

namespace strata::storage {
namespace {

void Check(const absl::Status& s) {
  if (!s.ok()) throw std::runtime_error(s.ToString());
}

// Rows at positions 0, 1/4, 2/4 and 3/4 of the range and at its end, of which each third is
// removed; or all of them are.
std::vector<uint8_t> Write(const std::string& path, const DeltaHeader& header) {
  auto writer = DeltaWriter::Create(path, header);
  Check(writer.status());
  for (const DeltaTable& table : header.tables) {
    for (uint64_t i = 0; i < 5; ++i) {
      const Position position(i == 4 ? ~uint64_t{0} : i << 62);
      const std::vector<uint8_t> row(header.row_bytes(table), static_cast<uint8_t>(i));
      const bool erased = header.removals || (i % 3 == 2 && !header.whole);
      Check(erased ? (*writer)->Delete(table.id, position)
                   : (*writer)->Upsert(table.id, position, row));
    }
  }
  Check((*writer)->Finish().status());
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::map<std::string, std::vector<uint8_t>> DeltaSeeds(const std::string& folder) {
  DeltaHeader header;
  header.from = {10, {1, 2}};
  header.to = {20, {3, 4}};
  header.tables = {{TableId(0), TableKind::kHashed, 2, 1}, {TableId(4), TableKind::kDense, 3, 0}};
  DeltaHeader whole = header;
  whole.from = {};
  whole.whole = whole.all_tables = whole.with_state = true;
  DeltaHeader changes = header;
  changes.with_state = true;
  DeltaHeader removals = header;
  removals.removals = true;
  removals.tables.resize(1);
  std::map<std::string, std::vector<uint8_t>> seeds;
  const std::string path = folder + "/delta";
  seeds["whole"] = Write(path, whole);
  seeds["changes"] = Write(path, changes);
  seeds["weights_only"] = Write(path, header);
  seeds["removals"] = Write(path, removals);
  seeds["cut"] = seeds["changes"];
  seeds["cut"].resize(seeds["cut"].size() * 2 / 3);
  // delta_fuzz's other form: an even byte, then where (two bytes) and what.
  seeds["mutations"] = {2, 0, 1, 255, 150, 0, 7};
  return seeds;
}

}  // namespace strata::storage
