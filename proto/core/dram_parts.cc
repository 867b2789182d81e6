#include "proto/core/dram_parts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace strata {
namespace {

// floor(bytes * part / sum)
uint64_t PartOf(uint64_t bytes, uint64_t part, uint64_t sum) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * part / sum);
}

// Gives `hashed` tables their parts of `left`.
void ShareOut(const std::vector<TableSpec>& tables, const std::vector<DramClaim>& claims,
              std::vector<size_t> hashed, uint64_t left, std::vector<uint64_t>& parts) {
  uint64_t shares = 0, least = 0;
  for (const size_t t : hashed) {
    shares += tables[t].dram_share;
    least += claims[t].least;
  }
  if (left < least) {
    for (const size_t t : hashed) parts[t] = PartOf(left, claims[t].least, least);
    return;
  }
  // Those first whose share must be worth the most.
  std::sort(hashed.begin(), hashed.end(), [&](size_t a, size_t b) {
    const auto needs = [&](size_t table, size_t other) {
      return static_cast<unsigned __int128>(claims[table].least) * tables[other].dram_share;
    };
    return needs(a, b) > needs(b, a);
  });
  for (const size_t t : hashed) {
    parts[t] = PartOf(left, tables[t].dram_share, shares);
    if (parts[t] >= claims[t].least) continue;  // as all that follow
    parts[t] = claims[t].least;
    left -= parts[t];
    shares -= tables[t].dram_share;
  }
}

}  // namespace

std::vector<uint64_t> DivideDram(const std::vector<TableSpec>& tables,
                                 const std::vector<DramClaim>& claims, uint64_t bytes) {
  std::vector<uint64_t> parts(tables.size(), 0);
  std::vector<size_t> dense, hashed;
  for (size_t t = 0; t < tables.size(); ++t) {
    (tables[t].kind == TableKind::kDense ? dense : hashed).push_back(t);
  }
  uint64_t left = bytes;
  for (const size_t t : dense) {
    parts[t] = std::min(claims[t].whole, bytes / 2 / dense.size());
    left -= parts[t];
  }
  ShareOut(tables, claims, std::move(hashed), left, parts);
  return parts;
}

}  // namespace strata
