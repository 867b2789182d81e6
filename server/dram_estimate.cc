#include "server/dram_estimate.h"

#include <cmath>
#include <cstddef>
#include <numeric>

#include "proto/core/dram_parts.h"
#include "storage/dram/store.h"
#include "storage/row/layout.h"
#include "storage/tiered/options.h"

namespace strata::server {
namespace {

// Sums of shares that are tried, one after the other, until one loses less than 1 / kMostLost of
// what is shared to the rounding of shares.
constexpr uint32_t kSums[] = {100, 1000, 10'000, 100'000, 1'000'000};
constexpr uint64_t kMostLost = 200;
constexpr uint64_t kLeastGain = 100;  // 1 / this of the limit

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

size_t RowBytes(const TableSpec& table) { return storage::RowLayout::For(table).row_bytes(); }

// A table without a limit: `shards` of the server have rows of it.
uint64_t UnlimitedBytes(const TableSpec& table, uint64_t rows, uint64_t shards) {
  if (rows == 0) return 0;
  storage::RowStoreOptions options;
  options.row_bytes = RowBytes(table);
  return shards * storage::RowStore::MostBytesFor(options, CeilDiv(rows, shards));
}

// The least limit of a hashed table, all shards together, under which every row has room.
uint64_t LimitFor(const ServerLoad& load, const TableSpec& table) {
  uint64_t rows = CeilDiv(RowsHere(load, table), load.shards_here);
  if (rows == 0) return 0;
  if (load.servers * load.shards_here > 1) {
    rows += static_cast<uint64_t>(4 * std::sqrt(static_cast<double>(rows)));
  }
  storage::TieredOptions options;
  options.row_bytes = RowBytes(table);
  options.eviction = load.eviction;
  return load.shards_here *
         (storage::RowStore::BytesFor(storage::TieredStoreOptions(options), rows) +
          storage::RowStore::kPageSlack);
}

uint64_t LeastBytes(const ServerLoad& load, const TableSpec& table) {
  return load.shards_here * storage::MinimumDramBytes(RowBytes(table));
}

// What is shared out among hashed tables, and what each needs of it.
struct Needs {
  std::vector<size_t> tables;  // numbers in ServerLoad::tables
  std::vector<uint64_t> bytes;
  uint64_t limit = 0;
};

Needs NeedsOf(const ServerLoad& load, const std::vector<TableInDram>& now) {
  Needs needs;
  needs.limit = load.dram_bytes;
  for (size_t t = 0; t < now.size(); ++t) {
    if (load.tables[t].kind == TableKind::kDense) {
      needs.limit -= now[t].part;
      continue;
    }
    needs.tables.push_back(t);
    needs.bytes.push_back(std::max(now[t].needed, LeastBytes(load, load.tables[t])));
  }
  return needs;
}

// The most that a table should have: what is left when each that needs less has that, divided
// equally among the others.
uint64_t FairPart(const Needs& needs) {
  std::vector<uint64_t> ascending = needs.bytes;
  std::sort(ascending.begin(), ascending.end());
  uint64_t left = needs.limit;
  for (size_t i = 0; i < ascending.size(); ++i) {
    const uint64_t equal = left / (ascending.size() - i);
    if (ascending[i] > equal) return equal;
    left -= ascending[i];
  }
  return ascending.back();
}

// By number of `needs.tables`: what is needed below `fair`, rounded up; the rest of `sum` is for
// the others.
std::vector<uint32_t> SharesOf(const Needs& needs, uint64_t fair, uint32_t sum) {
  const auto rounded = [&](uint64_t bytes) {
    const auto product = static_cast<unsigned __int128>(bytes) * sum;
    return std::max(1u, static_cast<uint32_t>((product + needs.limit - 1) / needs.limit));
  };
  uint32_t given = 0, others = 0;
  for (const uint64_t bytes : needs.bytes) {
    if (bytes < fair) {
      given += rounded(bytes);
    } else {
      ++others;
    }
  }
  const uint32_t each = given < sum ? std::max(1u, (sum - given) / others) : 1;
  std::vector<uint32_t> shares;
  for (const uint64_t bytes : needs.bytes) shares.push_back(bytes < fair ? rounded(bytes) : each);
  uint32_t divisor = 0;
  for (const uint32_t share : shares) divisor = std::gcd(divisor, share);
  for (uint32_t& share : shares) share /= divisor;
  return shares;
}

uint64_t HashedInDram(const ServerLoad& load) {
  const std::vector<TableInDram> tables = TablesInDram(load);
  uint64_t bytes = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    if (load.tables[t].kind == TableKind::kHashed) bytes += tables[t].in_dram();
  }
  return bytes;
}

// By table.
std::vector<uint32_t> ByTable(const Needs& needs, const std::vector<uint32_t>& shares,
                              size_t tables) {
  std::vector<uint32_t> spread(tables, 0);
  for (size_t i = 0; i < shares.size(); ++i) spread[needs.tables[i]] = shares[i];
  return spread;
}

ServerLoad WithShares(ServerLoad load, const std::vector<uint32_t>& shares) {
  for (size_t t = 0; t < shares.size(); ++t) {
    if (shares[t] > 0) load.tables[t].dram_share = shares[t];
  }
  return load;
}

}  // namespace

std::vector<TableInDram> TablesInDram(const ServerLoad& load) {
  // One table has all that dense ones leave, and growth without a limit bounds what it needs.
  const bool several = std::count_if(load.tables.begin(), load.tables.end(), [](const auto& t) {
                         return t.kind == TableKind::kHashed;
                       }) > 1;
  std::vector<TableInDram> tables;
  std::vector<DramClaim> claims;
  for (const TableSpec& table : load.tables) {
    const bool dense = table.kind == TableKind::kDense;
    // A tensor lies in one partition.
    const uint64_t shards =
        dense
            ? std::clamp<uint64_t>(CeilDiv(table.tensors.size(), load.servers), 1, load.shards_here)
            : load.shards_here;
    const uint64_t needed = dense || !several || load.dram_bytes == 0
                                ? UnlimitedBytes(table, RowsHere(load, table), shards)
                                : LimitFor(load, table);
    tables.push_back({needed, needed});
    claims.push_back({needed, dense ? 0 : LeastBytes(load, table)});
  }
  if (load.dram_bytes == 0) return tables;
  const std::vector<uint64_t> parts = DivideDram(load.tables, claims, load.dram_bytes);
  for (size_t t = 0; t < tables.size(); ++t) tables[t].part = parts[t];
  return tables;
}

std::vector<uint32_t> FittingShares(const ServerLoad& load) {
  if (load.dram_bytes == 0) return {};
  const Needs needs = NeedsOf(load, TablesInDram(load));
  if (needs.tables.size() < 2 || needs.limit == 0) return {};
  const uint64_t fair = FairPart(needs);
  std::vector<uint32_t> shares;
  uint64_t kept = 0, best = 0;
  for (const uint64_t bytes : needs.bytes) best += std::min(bytes, fair);
  for (const uint32_t sum : kSums) {
    shares = ByTable(needs, SharesOf(needs, fair, sum), load.tables.size());
    kept = HashedInDram(WithShares(load, shares));
    if (kept + needs.limit / kMostLost >= best) break;
  }
  const bool more = kept >= HashedInDram(load) + load.dram_bytes / kLeastGain;
  return more ? shares : std::vector<uint32_t>();
}

}  // namespace strata::server
