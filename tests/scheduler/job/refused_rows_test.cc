#include "scheduler/job/refused_rows.h"

#include <catch2/catch.hpp>

namespace strata::scheduler {
namespace {

using Rows = google::protobuf::RepeatedPtrField<RefusedRow>;

void Add(uint32_t table, uint64_t key, uint64_t refused, Rows& rows) {
  RefusedRow* row = rows.Add();
  row->set_table(table);
  row->set_key(key);
  row->set_refused(refused);
}

TEST_CASE("a row that is known only grows, and no more are known than may be", "[refused_rows]") {
  Rows known, reported;
  Add(0, 7, 3, reported);
  Add(1, 7, 1, reported);
  RaiseRefused(reported, known);
  REQUIRE(known.size() == 2);
  Rows again;
  Add(0, 7, 1, again);  // a server that began again
  Add(1, 7, 5, again);
  RaiseRefused(again, known);
  REQUIRE(known.size() == 2);
  CHECK(known[0].refused() == 3);
  CHECK(known[1].refused() == 5);
  Rows many;
  for (uint64_t key = 100; key < 200; ++key) Add(0, key, 1, many);
  RaiseRefused(many, known);
  REQUIRE(known.size() == kMostRefusedRows);
  CHECK(known[0].key() == 7);
  CHECK(known[2].key() == 100);
}

TEST_CASE("fields are those that a worker tells of the same row", "[refused_rows]") {
  Rows known, told;
  Add(0, 7, 3, known);
  Add(1, 7, 1, known);
  Add(0, 8, 1, known);
  known[1].set_field("bias");
  Add(0, 7, 0, told);
  Add(1, 7, 0, told);
  Add(0, 9, 0, told);
  for (RefusedRow& row : told) row.set_field("user");
  NameFields(told, known);
  REQUIRE(known.size() == 3);  // what no server has refused is none of them
  CHECK(known[0].field() == "user");
  CHECK(known[0].refused() == 3);
  CHECK(known[1].field() == "bias");
  CHECK(known[2].field().empty());
  told[0].set_field("site");
  NameFields(told, known);
  CHECK(known[0].field() == "user");  // the first word counts
  Rows again;
  Add(0, 7, 4, again);  // servers know no field
  RaiseRefused(again, known);
  CHECK(known[0].field() == "user");
  CHECK(known[0].refused() == 4);
}

}  // namespace
}  // namespace strata::scheduler
