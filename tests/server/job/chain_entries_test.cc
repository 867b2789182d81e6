// What of a shard's log stays in memory for the next copy: a run without a gap.
#include "server/job/chain_entries.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "server/protocol/replica_chain.h"
#include "storage/log/record.h"

namespace strata::server {
namespace {

constexpr uint64_t kAll = uint64_t{1} << 40;

LogEnd At(uint64_t step) { return {step, 0}; }
ChainEntryPtr Entry(uint64_t step) {
  storage::LogHeader header;
  header.step = Step(step);
  return MakeChainEntry(header, 1, At(step), {});
}
std::vector<ChainEntryPtr> Entries(uint64_t first, uint64_t last) {
  std::vector<ChainEntryPtr> entries;
  for (uint64_t step = first; step <= last; ++step) entries.push_back(Entry(step));
  return entries;
}
void Append(ChainEntries& here, uint64_t first, uint64_t last) {
  for (uint64_t step = first; step <= last; ++step) here.Add(At(step - 1), Entry(step));
}
// "3 4 5", or "read": the log has to be read.
std::string After(const ChainEntries& here, uint64_t step) {
  const auto entries = here.After(At(step), kAll);
  if (!entries) return "read";
  std::string text;
  for (const ChainEntryPtr& e : *entries)
    absl::StrAppend(&text, text.empty() ? "" : " ", e->end.step);
  return text;
}

TEST_CASE("what was appended is here, and what is older is read", "[chain_entries]") {
  ChainEntries here(At(2));
  Append(here, 3, 5);
  CHECK(After(here, 2) == "3 4 5");
  CHECK(After(here, 4) == "5");
  CHECK(After(here, 1) == "read");
  here.Take(At(0), Entries(1, 3));  // reaches what is here
  CHECK(After(here, 0) == "1 2 3 4 5");
  here.Have(At(2));
  CHECK(After(here, 2) == "3 4 5");
  CHECK(After(here, 1) == "read");
}

TEST_CASE("a read that does not reach what is here takes its place, and nothing is left out",
          "[chain_entries]") {
  ChainEntries here(At(100));
  Append(here, 101, 103);
  here.Take(At(10), Entries(11, 20));  // so many bytes are read at once
  CHECK(After(here, 10) == "11 12 13 14 15 16 17 18 19 20");
  // The log goes on meanwhile: what comes does not follow what is here.
  Append(here, 104, 106);
  CHECK(After(here, 15) == "16 17 18 19 20");
  here.Have(At(20));
  CHECK(After(here, 20) == "read");
  here.Take(At(20), Entries(21, 106));
  CHECK(After(here, 103) == "104 105 106");
  Append(here, 107, 108);
  CHECK(After(here, 105) == "106 107 108");
}

TEST_CASE("the oldest go where memory is short", "[chain_entries]") {
  ChainEntries here(At(0));
  Append(here, 1, 3);
  here.DropFirst();
  CHECK(After(here, 0) == "read");
  CHECK(After(here, 1) == "2 3");
  here.DropFirst();
  here.DropFirst();
  here.DropFirst();
  CHECK(here.bytes() == 0);
  CHECK(After(here, 3) == "read");
  Append(here, 4, 4);
  CHECK(After(here, 3) == "4");
}

}  // namespace
}  // namespace strata::server
