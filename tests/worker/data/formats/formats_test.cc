// libffm, Criteo's columns as csv, and columns of several values: features, fields, values, and the
// exact message of each fault.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/core/position.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/criteo_parser.h"
#include "worker/data/formats/csv_parser.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/libffm_parser.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/reading/field_names.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

JobSpec CsvJob(const ColumnsSpec& columns) {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  *spec.mutable_data()->mutable_columns() = columns;
  spec.mutable_model()->set_hash_seed(5);
  return spec;
}

Batch Parse(const LineParser& parser, const std::vector<std::string>& lines) {
  Batch batch;
  parser.Start(&batch);
  for (const std::string& line : lines) {
    LineError error;
    const LineOutcome outcome = parser.Parse(line, &batch, &error);
    INFO(line << ": " << error.reason);
    REQUIRE(outcome == LineOutcome::kExample);
  }
  LineParser::Finish(&batch);
  return batch;
}

// "column: reason" of a bad line. Also checks that the batch is as it was.
std::string Fault(const LineParser& parser, const std::string& line) {
  Batch batch;
  parser.Start(&batch);
  LineError error;
  if (parser.Parse(line, &batch, &error) != LineOutcome::kBad) return "not bad";
  CHECK(batch.size == 0);
  CHECK((batch.labels.empty() && batch.dense.empty() && batch.keys.empty()));
  CHECK((batch.values.empty() && batch.fields.empty()));
  return absl::StrCat(error.column, ": ", error.reason);
}

}  // namespace

TEST_CASE("libffm lines", "[data][libffm]") {
  const auto parser = MakeLibffmParser(4);
  const Batch batch = Parse(*parser, {"1 0:5:1 2:18446744073709551615:-.5",
                                      "-1 3:1:1 1:2:1 3:0:1 1:9:2\t0:4:1 # x", "0"});
  CHECK(batch.labels == std::vector<float>{1, 0, 0});
  CHECK(batch.offsets == std::vector<uint32_t>{0, 2, 7, 7});
  CHECK(batch.fields == std::vector<uint32_t>{0, 2, 0, 1, 1, 3, 3});
  CHECK(batch.keys == std::vector<uint64_t>{5, UINT64_MAX, 4, 2, 9, 1, 0});
  CHECK(batch.values == std::vector<float>{1, -.5f, 1, 1, 2, 1, 1});
  // Fields that are the ordinals are left out, as values that are all 1 are.
  const Batch plain = Parse(*parser, {"1 0:5:1 1:6:1 2:7:1 3:8:1", "0 1:3:1 0:2:1"});
  CHECK(plain.fields.empty());
  CHECK(plain.values.empty());
  CHECK(plain.keys == std::vector<uint64_t>{5, 6, 7, 8, 2, 3});
  CHECK(Parse(*parser, {"1 1:5:1"}).fields == std::vector<uint32_t>{1});
}

TEST_CASE("faults of libffm lines", "[data][libffm]") {
  const auto parser = MakeLibffmParser(4);
  CHECK(Fault(*parser, "2 0:1:1") == "1: label \"2\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "1 0:1:1 2:3") == "9: feature \"2:3\" is not field:feature:value");
  CHECK(Fault(*parser, "1 0") == "3: feature \"0\" is not field:feature:value");
  CHECK(Fault(*parser, "1 -1:1:1") == "3: field \"-1\" is negative");
  CHECK(Fault(*parser, "1 x:1:1") == "3: field \"x\" is not a whole number");
  CHECK(Fault(*parser, "1 18446744073709551616:1:1") ==
        "3: field \"18446744073709551616\" is over 18446744073709551615 (2^64 - 1)");
  CHECK(Fault(*parser, "1 3:1:1 4:1:1") == "9: field 4 is over 3, the highest of the train files");
  CHECK(Fault(*MakeLibffmParser(kMaxLibffmFields), "1 65536:1:1") ==
        "3: field 65536 is over the limit of 65535");
  CHECK(Fault(*parser, "1 0:-1:1") == "3: feature index \"-1\" is negative");
  CHECK(Fault(*parser, "1 0:18446744073709551616:1") ==
        "3: feature index \"18446744073709551616\" is over 18446744073709551615 (2^64 - 1)");
  CHECK(Fault(*parser, "1 0:1:nan") == "3: feature value \"nan\" is not a finite number");
  CHECK(Fault(*parser, "1 0:1:1:1") == "3: feature value \"1:1\" is not a finite number");
}

TEST_CASE("libffm against a slow reader", "[data][libffm]") {
  const auto parser = MakeLibffmParser(9);
  uint64_t random = 0;
  const auto draw = [&](uint64_t below) { return Mix64(++random) % below; };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::tuple<uint32_t, uint64_t, float>> features(draw(20));
    std::string line = "1";
    for (auto& [field, key, value] : features) {
      field = static_cast<uint32_t>(draw(9));
      key = draw(1000);
      value = static_cast<float>(draw(3));
      absl::StrAppend(&line, " ", field, ":", key, ":", value);
    }
    std::stable_sort(features.begin(), features.end(),
                     [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
    Batch batch;
    parser->Start(&batch);
    LineError error;
    REQUIRE(parser->Parse(line, &batch, &error) == LineOutcome::kExample);
    REQUIRE(batch.keys.size() == features.size());
    for (size_t i = 0; i < features.size(); ++i) {
      REQUIRE(
          std::tie(batch.fields[i], batch.keys[i], batch.values[i]) ==
          std::tie(std::get<0>(features[i]), std::get<1>(features[i]), std::get<2>(features[i])));
    }
  }
}

namespace {

std::vector<std::string> CriteoNames() {
  std::vector<std::string> names = {"Label"};
  for (int i = 1; i <= 13; ++i) names.push_back(absl::StrCat("I", i));
  for (int c = 1; c <= 26; ++c) names.push_back(absl::StrCat("C", c));
  return names;
}

std::unique_ptr<LineParser> CriteoCsv(const std::string& header,
                                      IntegerFeatures integers = IntegerFeatures::kDense) {
  auto parser = MakeCriteoCsvParser(header, integers, 3);
  INFO(parser.status().ToString());
  REQUIRE(parser.ok());
  return *std::move(parser);
}

std::string HeaderFault(const std::string& header) {
  std::string fault(MakeCriteoCsvParser(header, IntegerFeatures::kDense, 0).status().message());
  const std::string end =
      "; it names Label, I1 to I13, C1 to C26 and perhaps Id (for other columns use "
      "spec.data.format csv)";
  REQUIRE(fault.size() > end.size());
  REQUIRE(fault.substr(fault.size() - end.size()) == end);
  return fault.substr(0, fault.size() - end.size());
}

}  // namespace

TEST_CASE("criteo_csv in any order of columns gives what criteo gives", "[data][criteo_csv]") {
  const IntegerFeatures integers = GENERATE(IntegerFeatures::kDense, IntegerFeatures::kBucket);
  const auto tsv = MakeCriteoParser(integers, 3);
  uint64_t random = 0;
  const auto draw = [&](uint64_t below) { return Mix64(++random) % below; };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> names = CriteoNames();
    std::vector<std::pair<std::string, std::string>> columns;  // name, text
    std::vector<std::string> texts;
    for (size_t c = 0; c < names.size(); ++c) {
      std::string text = c == 0    ? std::to_string(draw(2))
                         : c <= 13 ? std::to_string(int64_t(draw(2000)) - 3)
                                   : absl::StrCat(absl::Hex(draw(1ull << 32), absl::kZeroPad8));
      if (c > 0 && draw(4) == 0) text.clear();
      texts.push_back(text);
      if (draw(8) == 0) text = absl::StrCat("\"", text, "\"");
      if (c > 0 && c <= 13 && !text.empty() && text[0] != '"' && draw(8) == 0) text += ".0";
      if (draw(2) == 0) names[c][0] = static_cast<char>(std::tolower(names[c][0]));
      columns.emplace_back(names[c], text);
    }
    if (round % 2 == 0) columns.emplace_back("Id", absl::StrCat(round));
    for (size_t i = columns.size() - 1; i > 0; --i) std::swap(columns[i], columns[draw(i + 1)]);
    std::vector<std::string> header, line;
    for (const auto& [name, text] : columns) {
      header.push_back(name);
      line.push_back(text);
    }
    const auto parser = CriteoCsv(absl::StrJoin(header, ","), integers);
    CAPTURE(absl::StrJoin(header, ","), absl::StrJoin(line, ","));
    const Batch got = Parse(*parser, {absl::StrJoin(line, ",")});
    const Batch wanted = Parse(*tsv, {absl::StrJoin(texts, "\t")});
    REQUIRE(got.labels == wanted.labels);
    REQUIRE(got.dense == wanted.dense);
    REQUIRE(got.keys == wanted.keys);
    REQUIRE(got.numeric == wanted.numeric);
  }
}

TEST_CASE("headers that criteo_csv cannot use", "[data][criteo_csv]") {
  const std::string good = absl::StrJoin(CriteoNames(), ",");
  CHECK(CriteoCsv(good + "\r")->numeric() == 13);
  CHECK(HeaderFault(good + ",price") ==
        "the header of criteo_csv: column 41, \"price\", is unknown");
  CHECK(HeaderFault("0,1,2") == "the header of criteo_csv: column 1, \"0\", is unknown");
  CHECK(HeaderFault(good + ",c7") == "the header of criteo_csv: column 41, \"c7\", is there twice");
  CHECK(HeaderFault("Label") == "the header of criteo_csv: column I1 is missing");
  CHECK(HeaderFault(good.substr(6)) == "the header of criteo_csv: column Label is missing");
  CHECK(HeaderFault(good.substr(0, good.size() - 4)) ==
        "the header of criteo_csv: column C26 is missing");
  CHECK(HeaderFault("") == "the header of criteo_csv: column 1, \"\", is unknown");
  CHECK(HeaderFault("\"Label") ==
        "the header of criteo_csv: column 1: a quoted field does not end on its line");
}

TEST_CASE("faults of criteo_csv lines", "[data][criteo_csv]") {
  const auto parser = CriteoCsv("Id," + absl::StrJoin(CriteoNames(), ","));
  const std::string rest = absl::StrCat(std::string(38, ','), "c26");
  CHECK(Parse(*parser, {"7,1,5" + rest}).dense[0] == CriteoDense(5));
  CHECK(Fault(*parser, "7,2,5" + rest) == "3: label \"2\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "7,,5" + rest) == "3: label \"\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "7,1,x" + rest) == "5: I1 \"x\" is not an integer of at most 64 bits");
  CHECK(Fault(*parser, "7,1,1.5" + rest) == "5: I1 \"1.5\" is not an integer of at most 64 bits");
  CHECK(Fault(*parser, "\"7\",\"1\",\"x\"" + rest) ==
        "9: I1 \"x\" is not an integer of at most 64 bits");
  CHECK(Fault(*parser, "7,\"1" + rest) == "3: a quoted field does not end on its line");
  CHECK(Fault(*parser, "7,1,5") == "1: found 3 columns, the header names 41");
  CHECK(Fault(*parser, "7,1,5," + rest) == "1: found 42 columns, the header names 41");
  CHECK(Fault(*parser, "7,1,\"5\"," + rest) == "1: found 42 columns, the header names 41");
}

namespace {

ColumnsSpec MultiColumns() {
  ColumnsSpec columns;
  columns.set_label("y");
  columns.add_numeric("n");
  columns.add_categorical("c");
  columns.add_multi_valued()->set_column("tags");
  MultiValuedColumn* genres = columns.add_multi_valued();
  genres->set_column("genres");
  genres->set_separator(";");
  genres->set_pooling("mean");
  return columns;
}

std::unique_ptr<LineParser> Multi(const ColumnsSpec& columns) {
  auto parser = MakeCsvParser(CsvJob(columns), "genres,y,tags,n,c");
  INFO(parser.status().ToString());
  REQUIRE(parser.ok());
  return *std::move(parser);
}

}  // namespace

TEST_CASE("fields have the names of their columns", "[data]") {
  JobSpec spec;
  DataSpec& data = *spec.mutable_data();
  data.set_format("csv");
  data.mutable_columns()->add_categorical("site");
  data.mutable_columns()->add_categorical("user");
  data.mutable_columns()->add_multi_valued()->set_column("tags");
  CHECK(FieldNames(spec) == std::vector<std::string>{"site", "user", "tags"});
  data.set_format("criteo");
  REQUIRE(FieldNames(spec).size() == 26);
  CHECK(FieldNames(spec)[25] == "C26");
  data.set_format("criteo_csv");
  data.set_integer_features("bucket");
  REQUIRE(FieldNames(spec).size() == 39);
  CHECK(FieldNames(spec)[26] == "I1");
  data.set_format("libffm");
  CHECK(FieldNames(spec).empty());
}

TEST_CASE("columns of several values", "[data][csv]") {
  const auto parser = Multi(MultiColumns());
  const auto key = [](uint32_t field, const char* value) {
    constexpr const char* kColumns[] = {"c", "tags", "genres"};
    return FeatureKey(NamedFieldSeed(5, kColumns[field]), value);
  };
  const Batch batch = Parse(*parser, {"a;b;a;c,1,x|y,2,k", ",0,,,", "\"q\"\"d;;e;\",1,|z|,,k"});
  CHECK(batch.offsets == std::vector<uint32_t>{0, 7, 10, 14});
  CHECK(batch.fields == std::vector<uint32_t>{0, 1, 1, 2, 2, 2, 2, 0, 1, 2, 0, 1, 2, 2});
  CHECK(batch.keys == std::vector<uint64_t>{key(0, "k"), key(1, "x"), key(1, "y"), key(2, "a"),
                                            key(2, "b"), key(2, "a"), key(2, "c"), key(0, ""),
                                            key(1, ""), key(2, ""), key(0, "k"), key(1, "z"),
                                            key(2, "q\"d"), key(2, "e")});
  CHECK(batch.values ==
        std::vector<float>{1, 1, 1, .25f, .25f, .25f, .25f, 1, 1, 1, 1, 1, .5f, .5f});
  CHECK(batch.dense == std::vector<float>{2, 0, 0});
  // One value each: an ordinary column.
  const Batch single = Parse(*parser, {"a,1,x,2,k", ",0,y,,"});
  CHECK(single.fields.empty());
  CHECK(single.values.empty());
  CHECK(Fault(*parser, "a;b,1,x|y,two,k") == "11: column n: \"two\" is not a finite number");
  CHECK(Fault(*parser, "a;b,1,x|y,2,k,z") == "1: found 6 columns, expected 5");
}

TEST_CASE("columns of several values that the job file gets wrong", "[data][csv]") {
  const auto fault = [](const ColumnsSpec& columns) {
    return std::string(MakeCsvParser(CsvJob(columns), "genres,y,tags,n,c").status().message());
  };
  ColumnsSpec columns = MultiColumns();
  columns.mutable_multi_valued(1)->set_column("tags");
  CHECK(fault(columns) ==
        "spec.data.columns.multiValued[1].column: column \"tags\" is listed twice");
  columns = MultiColumns();
  columns.mutable_multi_valued(0)->set_column("none");
  CHECK(
      fault(columns) ==
      "spec.data.columns.multiValued[0].column: \"none\" is no column of the header, which names "
      "\"genres\", \"y\", \"tags\", \"n\", \"c\"; name one of these, or give the file that column");
  columns = MultiColumns();
  columns.mutable_multi_valued(1)->set_pooling("max");
  CHECK(fault(columns) ==
        "spec.data.columns.multiValued[1].pooling: \"max\" is neither sum nor mean");
  columns.mutable_multi_valued(0)->set_separator("||");
  CHECK(fault(columns) ==
        "spec.data.columns.multiValued[0].separator: \"||\" must be one character (no quote, no "
        "line end), or \"\\t\"");
}

}  // namespace strata
