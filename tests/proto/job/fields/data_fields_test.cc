// The fields of csv that spec.data.columns says.
#include "proto/job/fields/data_fields.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/fields/fields_job.h"

namespace strata {
namespace {

TEST_CASE("columns of csv are fields of the same names", "[job]") {
  DataSpec data;
  data.set_format("csv");
  ColumnsSpec& columns = *data.mutable_columns();
  columns.set_label("y");
  columns.add_numeric("a b");
  columns.add_numeric("a.b");
  columns.add_categorical("c");
  MultiValuedColumn* tags = columns.add_multi_valued();
  tags->set_column("t");
  tags->set_separator(";");
  tags->set_pooling("mean");
  const auto fields = spec::FieldsOfData(data, 0);
  REQUIRE(fields.size() == 4);
  CHECK(fields[0].name() == "a_b");
  CHECK(fields[0].column() == "a b");
  CHECK(fields[1].name() == "a_b_2");
  CHECK(fields[2].kind() == "categorical");
  CHECK(fields[3].separator() == ";");
  CHECK(fields[3].pooling() == "mean");
  CHECK(fields[3].has_default_value());
}

// Of fields of csv with those columns, as categories.
std::vector<std::string> NamesOf(const std::vector<std::string>& columns) {
  DataSpec data;
  data.set_format("csv");
  for (const std::string& c : columns) data.mutable_columns()->add_categorical(c);
  std::vector<std::string> names;
  for (const FieldConfig& f : spec::FieldsOfData(data, 0)) names.push_back(f.name());
  return names;
}

// The oracle tries each number from 2 for each column.
TEST_CASE("columns whose names come to the same are numbered in their order", "[job]") {
  const std::string most(63, 'p');
  std::vector<std::string> columns = {"a b", "a.b", "a_b", "a_b_2", "a_b_3", most + "x"};
  std::sort(columns.begin(), columns.end());
  do {
    std::vector<std::string> expected;
    std::set<std::string> seen;
    for (const std::string& c : columns) {
      const std::string base =
          c.size() > 63 ? most : absl::StrReplaceAll(c, {{" ", "_"}, {".", "_"}});
      std::string name = base;
      for (int i = 2; !seen.insert(name).second; ++i) {
        name = absl::StrCat(base.substr(0, 56), "_", i);
      }
      expected.push_back(name);
    }
    REQUIRE(NamesOf(columns) == expected);
  } while (std::next_permutation(columns.begin(), columns.end()));
  CHECK(NamesOf({most + "x", most + "y", most + "z"}) ==
        std::vector<std::string>{most, most.substr(0, 56) + "_2", most.substr(0, 56) + "_3"});
}

// It took minutes, at each of the places that ask for the fields of a job.
TEST_CASE("as many columns as there may be are named in no time", "[job]") {
  std::vector<std::string> columns, foreign;
  for (uint32_t i = 0; i < spec::kMostFields; ++i) {
    columns.push_back(absl::StrCat(std::string(63, 'c'), i));
    // Two letters of two bytes.
    const uint32_t bytes[] = {0xc4 + i / 4096, 0x80 + i % 64, 0xc4, 0x80 + i / 64 % 64};
    foreign.emplace_back(std::begin(bytes), std::end(bytes));
  }
  CHECK(NamesOf(columns).back() == absl::StrCat(std::string(56, 'c'), "_65536"));
  CHECK(NamesOf(foreign).back() == "_____65536");
}

TEST_CASE("columns have as many features as spec.fields may name", "[job]") {
  const auto problem = [](int columns) {
    TrainingJob job = FieldsJob();
    job.mutable_spec()->clear_fields();
    ColumnsSpec& of = *job.mutable_spec()->mutable_data()->mutable_columns();
    for (int i = 0; i < columns; ++i) of.add_numeric(absl::StrCat("n", i));
    of.add_categorical("c");
    const absl::Status status = ResolveJob(job);
    return status.ok() ? "OK" : std::string(status.message());
  };
  CHECK(problem(65535) == "OK");
  CHECK(problem(65536) ==
        "spec.data.columns (numeric, categorical and multiValued): 65537 is outside the limits; "
        "give a number from 0 to 65536");
}

}  // namespace
}  // namespace strata
