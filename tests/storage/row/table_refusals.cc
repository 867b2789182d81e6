#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tests/storage/row/table_conformance.h"

namespace strata::storage {

void CheckRefusals(const ConformanceCase& c) {
  auto table = c.make();
  const auto refused = [&](std::vector<Position> batch) {
    std::vector<RowRef> refs(batch.size());
    CHECK(table->Resolve(batch, Access::kUpdate, refs).code() ==
          absl::StatusCode::kInvalidArgument);
    CHECK(table->Resolve(batch, Access::kRead, refs).code() == absl::StatusCode::kInvalidArgument);
    CHECK(table->Erase(batch).code() == absl::StatusCode::kInvalidArgument);
    CHECK(table->counters().rows == 0);
  };
  const Position a = c.first;
  const Position b = a.Next();
  refused({b, a});
  refused({a, a});
  if (c.first.value > 0) refused({Position(c.first.value - 1), a});
  if (c.last.value < ~0ull) refused({a, c.last.Next()});
  if (table->max_batch() < 1'000'000) {
    std::vector<Position> many;
    for (size_t i = 0; i <= table->max_batch(); ++i) many.push_back(Position(c.first.value + i));
    refused(many);
  }
}

}  // namespace strata::storage
