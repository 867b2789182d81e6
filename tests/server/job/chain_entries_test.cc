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
  return MakeChainEntry(header, At(step), {});
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
  const auto entries = here.After(At(step), kAll, kAll);
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
  here.Take(At(0), Entries(1, 2));
  CHECK(After(here, 0) == "1 2");
  CHECK(After(here, 2) == "3 4 5");
  CHECK(here.BytesAfter(At(0)) == 5 * Entry(1)->size());
  CHECK(here.BytesAfter(At(3)) == 2 * Entry(1)->size());
  here.Have(At(2), At(2));
  CHECK(After(here, 2) == "3 4 5");
  CHECK(After(here, 1) == "read");
  CHECK(here.read_bytes() == 0);
}

TEST_CASE("whoever is behind gets piece after piece of the log, and then what is here, with no gap",
          "[chain_entries]") {
  ChainEntries here(At(100));
  Append(here, 101, 103);
  here.Take(At(10), Entries(11, 20));  // so many bytes are read at once
  CHECK(After(here, 10) == "11 12 13 14 15 16 17 18 19 20");
  CHECK(here.read_through() == At(20));
  here.Take(At(20), Entries(21, 22));  // ahead
  here.Have(At(11), At(19));           // the copies after the next one are further behind
  CHECK(After(here, 18) == "read");
  CHECK(After(here, 19) == "20 21 22");
  Append(here, 104, 106);  // the log goes on meanwhile
  CHECK(After(here, 22) == "read");
  here.Take(At(22), Entries(23, 100));
  here.Have(At(99), At(99));
  CHECK(After(here, 99) == "100");
  CHECK(After(here, 100) == "101 102 103 104 105 106");
  // Another copy, which is elsewhere.
  here.Take(At(4), Entries(5, 6));
  CHECK(After(here, 4) == "5 6");
  CHECK(After(here, 98) == "read");
  CHECK(After(here, 102) == "103 104 105 106");
}

TEST_CASE("what does not follow takes the place of what is here, which the log has",
          "[chain_entries]") {
  ChainEntries here(At(2));
  Append(here, 3, 5);
  here.Add(At(7), Entry(8));
  CHECK(After(here, 4) == "read");
  CHECK(After(here, 7) == "8");
}

TEST_CASE("so many entries go at once, by bytes and by number, and one at least",
          "[chain_entries]") {
  ChainEntries here(At(0));
  Append(here, 1, 5);
  const uint64_t bytes = Entry(1)->size();
  CHECK(here.After(At(1), 2 * bytes, 9)->size() == 2);
  CHECK(here.After(At(1), 1, 9)->size() == 1);
  CHECK(here.After(At(1), kAll, 3)->size() == 3);
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
