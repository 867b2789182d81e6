// Criteo, libsvm and csv lines: values, keys, and the exact message of each fault.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/position.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/criteo_parser.h"
#include "worker/data/formats/csv_parser.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/libsvm_parser.h"
#include "worker/data/formats/line_parser.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

const std::string kIntegersText = "\t1\t-2\t\t3\t1382\t4\t15\t2\t181\t1\t2\t\t9223372036854775807";

// A good Criteo line; category f is "c<f>", C22 is missing.
std::string CriteoLine() {
  std::string line = "1" + kIntegersText;
  for (int f = 0; f < 26; ++f) line += f == 21 ? "\t" : "\tc" + std::to_string(f);
  return line;
}

Batch Started(const LineParser& parser) {
  Batch batch;
  parser.Start(&batch);
  return batch;
}

// "column: reason" of a bad line, or what else it is. Also checks that the batch is untouched.
std::string Fault(const LineParser& parser, const std::string& line) {
  Batch batch = Started(parser);
  LineError error;
  switch (parser.Parse(line, &batch, &error)) {
    case LineOutcome::kExample:
      return "example";
    case LineOutcome::kBlank:
      return "blank";
    case LineOutcome::kBad:
      break;
  }
  CHECK(batch.size == 0);
  CHECK(batch.labels.empty());
  CHECK(batch.dense.empty());
  CHECK(batch.keys.empty());
  CHECK(batch.values.empty());
  CHECK(batch.offsets == std::vector<uint32_t>{0});
  return std::to_string(error.column) + ": " + error.reason;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

ColumnsSpec Columns() {
  ColumnsSpec columns;
  columns.set_label("y");
  columns.add_numeric("a");
  columns.add_categorical("c");
  columns.add_categorical("b");
  columns.add_ignored("id");
  return columns;
}

JobSpec CsvJob(const ColumnsSpec& columns) {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  *spec.mutable_data()->mutable_columns() = columns;
  return spec;
}

std::unique_ptr<LineParser> Csv(const JobSpec& spec, const std::string& first_line) {
  absl::StatusOr<std::unique_ptr<LineParser>> parser = MakeCsvParser(spec, first_line);
  INFO(parser.status().ToString());
  REQUIRE(parser.ok());
  return *std::move(parser);
}

std::unique_ptr<LineParser> Csv(const ColumnsSpec& columns, const std::string& first_line) {
  return Csv(CsvJob(columns), first_line);
}

std::string CsvFault(const ColumnsSpec& columns, const std::string& first_line) {
  return std::string(MakeCsvParser(CsvJob(columns), first_line).status().message());
}

}  // namespace

TEST_CASE("keys are pinned: other programs make the same", "[data][hash]") {
  struct Golden {
    std::string value;
    uint32_t field;
    uint64_t hash_seed;
    uint64_t key;
  };
  // Made by the Python program of worker/data/formats/feature_hash.h.
  const std::vector<Golden> golden = {
      {"68fd1e64", 0, 0ull, 0x8957281b4a24b84cull},
      {"", 0, 0ull, 0x12ada5ce9ed67248ull},
      {"", 25, 0ull, 0xce89d4fbcb98e9aaull},
      {"68fd1e64", 1, 0ull, 0x0a0c63a384cfa27full},
      {"68fd1e64", 0, 7ull, 0x4feff799219d20ccull},
      {"SP1", 26, 0ull, 0xad0e63654f04ffe1ull},
      {"52", 30, 18446744073709551615ull, 0xa3231e8523d65a87ull},
      {std::string(300, 'x'), 3, 5, 0xdcafa46ba4d3415full},
  };
  for (const Golden& g : golden) {
    CAPTURE(g.value, g.field, g.hash_seed);
    CHECK(FeatureKey(FieldSeed(g.hash_seed, g.field), g.value) == g.key);
  }
  CHECK(FeatureKey(NamedFieldSeed(0, "C1"), "68fd1e64") == 0x83ad16dd6cdc9ae9ull);
  CHECK(FeatureKey(NamedFieldSeed(0, "item"), "") == 0xb8534778d1098fcfull);
  CHECK(FeatureKey(NamedFieldSeed(7, "C1"), "68fd1e64") == 0x0ba2fba5ad69efcfull);
  CHECK(FeatureKey(NamedFieldSeed(18446744073709551615ull, "3"), "x") == 0x24f64e23ce43354dull);
  // Of a bucket, to the byte: 5 to 7.5.
  const uint64_t seed = NamedFieldSeed(7, "price");
  const char bucket[] = "\0\0\0\0\0\0\0\x14\x40\0\0\0\0\0\0\x1e\x40";
  CHECK(BucketKey(seed, 5, 7.5) == FeatureKey(seed, absl::string_view(bucket, 17)));
  CHECK(MissingBucketKey(seed) == FeatureKey(seed, absl::string_view(bucket, 1)));
}

TEST_CASE("a Criteo line with dense integers", "[data][criteo]") {
  const auto parser = MakeCriteoParser(IntegerFeatures::kDense, 7);
  Batch batch = Started(*parser);
  LineError error;
  REQUIRE(parser->Parse(CriteoLine() + "\r", &batch, &error) == LineOutcome::kExample);
  REQUIRE(batch.size == 1);
  CHECK(batch.numeric == 13);
  CHECK(batch.labels == std::vector<float>{1.0f});
  REQUIRE(batch.dense.size() == 13);
  CHECK(batch.dense[0] == std::log(2.0f));
  CHECK(batch.dense[1] == 0.0f);  // negative
  CHECK(batch.dense[2] == 0.0f);  // missing
  CHECK(batch.dense[4] == static_cast<float>(std::log(1383.0)));
  CHECK(batch.dense[12] == Approx(43.668272));
  REQUIRE(batch.keys.size() == 26);
  for (uint32_t f = 0; f < 26; ++f) {
    const std::string value = f == 21 ? "" : "c" + std::to_string(f);
    CHECK(batch.keys[f] == FeatureKey(FieldSeed(7, f), value));
  }
  CHECK(batch.offsets == std::vector<uint32_t>{0, 26});
  CHECK(batch.values.empty());
}

TEST_CASE("a Criteo line with bucketed integers", "[data][criteo]") {
  const auto parser = MakeCriteoParser(IntegerFeatures::kBucket, 0);
  Batch batch = Started(*parser);
  LineError error;
  REQUIRE(parser->Parse(CriteoLine(), &batch, &error) == LineOutcome::kExample);
  CHECK(batch.numeric == 0);
  CHECK(batch.dense.empty());
  REQUIRE(batch.keys.size() == 39);
  CHECK(batch.keys[0] == FeatureKey(FieldSeed(0, 0), "c0"));
  const std::vector<std::string> buckets = {"SP1", "SP-2", "",    "1",   "52", "1",   "7",
                                            "SP2", "27",   "SP1", "SP2", "",   "1906"};
  for (uint32_t i = 0; i < 13; ++i) {
    CAPTURE(i);
    CHECK(batch.keys[26 + i] == FeatureKey(FieldSeed(0, 26 + i), buckets[i]));
  }
  CHECK(CriteoBucket(3) == "1");
  CHECK(CriteoBucket(2) == "SP2");
  CHECK(CriteoBucket(0) == "SP0");
  CHECK(CriteoBucket(INT64_MIN + 1) == "SP-9223372036854775807");
}

TEST_CASE("bucket borders agree with long double logarithms", "[data][criteo]") {
  for (int64_t x = 3; x < 300'000; ++x) {
    const long double ln = std::log(static_cast<long double>(x));
    REQUIRE(CriteoBucket(x) == std::to_string(static_cast<int64_t>(ln * ln)));
  }
}

TEST_CASE("faults of Criteo lines", "[data][criteo]") {
  const auto parser = MakeCriteoParser(IntegerFeatures::kDense, 0);
  const std::string good = CriteoLine();
  CHECK(Fault(*parser, good) == "example");
  CHECK(Fault(*parser, "") == "blank");
  CHECK(Fault(*parser, "\r") == "blank");
  const std::string shape =
      " columns parted by tabs, criteo has 40 (label, 13 integers, 26 "
      "categories)";
  CHECK(Fault(*parser, good + "\tx") == "1: found 41" + shape);
  CHECK(Fault(*parser, good.substr(0, good.rfind('\t'))) == "1: found 39" + shape);
  CHECK(Fault(*parser, "1 2:1") == "1: found 1" + shape);
  CHECK(Fault(*parser, std::string(100'000, '\t')) == "1: found 100001" + shape);
  CHECK(Fault(*parser, "2" + good.substr(1)) == "1: label \"2\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "NaN" + good.substr(1)) == "1: label \"NaN\" is none of 0, 1, -1");
  CHECK(Fault(*parser, good.substr(1)) == "1: label \"\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "-1" + good.substr(1)) == "example");
  CHECK(Fault(*parser, Replaced(good, "\t1382\t", "\t13.5\t")) ==
        "11: I5 \"13.5\" is not an integer of at most 64 bits");
  CHECK(Fault(*parser, Replaced(good, "9223372036854775807", "9223372036854775808")) ==
        "32: I13 \"9223372036854775808\" is not an integer of at most 64 bits");
  CHECK(Fault(*parser, Replaced(good, "\tc3", std::string("\tc\0", 3))) ==
        "62: a NUL byte; is this a text file?");
}

TEST_CASE("libsvm lines", "[data][libsvm]") {
  const auto parser = MakeLibsvmParser(3);
  Batch batch = Started(*parser);
  LineError error;
  REQUIRE(parser->Parse("-1 5:1 18446744073709551615:-2.5e-1\t0:3 # note", &batch, &error) ==
          LineOutcome::kExample);
  REQUIRE(parser->Parse("+1", &batch, &error) == LineOutcome::kExample);
  REQUIRE(parser->Parse("  1.0  7:+1  \r", &batch, &error) == LineOutcome::kExample);
  LineParser::Finish(&batch);
  CHECK(batch.labels == std::vector<float>{0, 1, 1});
  CHECK(batch.offsets == std::vector<uint32_t>{0, 3, 3, 4});
  CHECK(batch.keys == std::vector<uint64_t>{5, UINT64_MAX, 0, 7});
  CHECK(batch.values == std::vector<float>{1, -0.25f, 3, 1});
  Batch ones = Started(*parser);
  REQUIRE(parser->Parse("1 2:1 3:1.0", &ones, &error) == LineOutcome::kExample);
  LineParser::Finish(&ones);
  CHECK(ones.values.empty());
  CHECK(Fault(*parser, "   ") == "blank");
  CHECK(Fault(*parser, "# all comment") == "blank");
}

TEST_CASE("faults of libsvm lines", "[data][libsvm]") {
  const auto parser = MakeLibsvmParser(2);
  CHECK(Fault(*parser, "2 1:1") == "1: label \"2\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "nan 1:1") == "1: label \"nan\" is none of 0, 1, -1");
  CHECK(Fault(*parser, "1 1:1 -3:1") == "7: feature index \"-3\" is negative");
  CHECK(Fault(*parser, "1 18446744073709551616:1") ==
        "3: feature index \"18446744073709551616\" is over 18446744073709551615 (2^64 - 1)");
  CHECK(Fault(*parser, "1 a:1") == "3: feature index \"a\" is not a whole number");
  CHECK(Fault(*parser, "1 :1") == "3: feature index \"\" is not a whole number");
  CHECK(Fault(*parser, "1 5") == "3: feature \"5\" is not index:value");
  CHECK(Fault(*parser, "1 5:") == "3: feature value \"\" is not a finite number");
  CHECK(Fault(*parser, "1 5:x") == "3: feature value \"x\" is not a finite number");
  CHECK(Fault(*parser, "1 5:inf") == "3: feature value \"inf\" is not a finite number");
  CHECK(Fault(*parser, "1 5:1e39") ==
        "3: feature value \"1e39\" is out of float32's range (3.4e38); scale the "
        "numbers, or write 0 for tiny ones");
  CHECK(Fault(*parser, "1 5:1 6:nan") == "7: feature value \"nan\" is not a finite number");
  CHECK(Fault(*parser, "1 1:1 2:1 3:1") ==
        "11: more than 2 features, the most on a line of the train files");
}

TEST_CASE("csv lines", "[data][csv]") {
  const auto parser = Csv(Columns(), "id,y,a,b,c\r");
  Batch batch = Started(*parser);
  LineError error;
  REQUIRE(parser->Parse("9,1,2.5,x,y", &batch, &error) == LineOutcome::kExample);
  REQUIRE(parser->Parse(",0, ,\"q\"\"d, e\",", &batch, &error) == LineOutcome::kExample);
  CHECK(batch.numeric == 1);
  CHECK(batch.labels == std::vector<float>{1, 0});
  CHECK(batch.dense == std::vector<float>{2.5f, 0});
  const uint64_t c = NamedFieldSeed(0, "c"), b = NamedFieldSeed(0, "b");
  CHECK(batch.keys == std::vector<uint64_t>{FeatureKey(c, "y"), FeatureKey(b, "x"),
                                            FeatureKey(c, ""), FeatureKey(b, "q\"d, e")});
  // Columns that come, and others in another place, change no key.
  ColumnsSpec more = Columns();
  more.mutable_categorical()->SwapElements(0, 1);
  more.add_categorical("d");
  const auto swapped = Csv(more, "d,c,b,a,y,id");
  Batch other = Started(*swapped);
  REQUIRE(swapped->Parse("z,y,x,2.5,1,9", &other, &error) == LineOutcome::kExample);
  CHECK(other.keys == std::vector<uint64_t>{FeatureKey(b, "x"), FeatureKey(c, "y"),
                                            FeatureKey(NamedFieldSeed(0, "d"), "z")});
  ColumnsSpec columns;
  columns.set_header(false);
  columns.set_delimiter("\\t");
  columns.set_label("2");
  columns.add_categorical("0");
  columns.add_ignored("*");
  const auto positions = Csv(columns, "u\tv\t0");
  REQUIRE(positions->Parse("u\tv\t-1", &batch, &error) == LineOutcome::kExample);
  CHECK(batch.keys.back() == FeatureKey(NamedFieldSeed(0, "0"), "u"));
}

TEST_CASE("faults of csv lines", "[data][csv]") {
  const auto parser = Csv(Columns(), "id,y,a,b,c");
  CHECK(Fault(*parser, "9,1,2,x") == "1: found 4 columns, expected 5");
  CHECK(Fault(*parser, "9,1,2,x,y,z") == "1: found 6 columns, expected 5");
  CHECK(Fault(*parser, "9,3,2,x,y") ==
        "3: column y: label \"3\" is none of 0, 1, -1; spec.labels may name a number (kind: real, "
        "count), or a label that lines may lack");
  CHECK(Fault(*parser, "9,,2,x,y") ==
        "3: column y: label \"\" is none of 0, 1, -1; spec.labels may name a number (kind: real, "
        "count), or a label that lines may lack");
  CHECK(Fault(*parser, "9,1,two,x,y") == "5: column a: \"two\" is not a finite number");
  CHECK(Fault(*parser, "9,1,-inf,x,y") == "5: column a: \"-inf\" is not a finite number");
  CHECK(Fault(*parser, "9,1,2,\"x,y") == "7: a quoted field does not end on its line");
  CHECK(Fault(*parser, "9,1,2,\"x\"z,y") == "7: text after the closing quote of a field");
}

TEST_CASE("csv columns that do not fit the file", "[data][csv]") {
  const std::string header = "id,y,a,b,c";
  ColumnsSpec columns = Columns();
  CHECK(CsvFault(columns, "id,y,a,b,c,d") ==
        "spec.data.columns: column \"d\" is in no list; add it to numeric, categorical, "
        "multiValued or "
        "ignored, or set ignored: [\"*\"]");
  CHECK(CsvFault(columns, "id,y,a,b") ==
        "spec.data.columns.categorical[0]: \"c\" is no column of the header, which names \"id\", "
        "\"y\", \"a\", \"b\"; name one of these, or give the file that column");
  columns.set_label("a");
  CHECK(CsvFault(columns, header) == "spec.data.columns.numeric[0]: column \"a\" is listed twice");
  columns = Columns();
  columns.set_label("");
  CHECK(CsvFault(columns, header) == "spec.data.columns.label is empty");
  columns = Columns();
  columns.set_numeric(0, "9");
  CHECK(CsvFault(columns, header) ==
        "spec.data.columns.numeric[0]: position 9 is past the last column, 4; give one that is "
        "there, or a file with that column");
  CHECK(CsvFault(Columns(), "id,y,a,b,b,c") ==
        "spec.data.columns.categorical[1]: the header names \"b\" twice; give positions instead");
  columns = Columns();
  columns.set_header(false);
  CHECK(CsvFault(columns, header) ==
        "spec.data.columns.label: \"y\" is not a position, and there is no header; give one of 0 "
        "to 4");
  columns = Columns();
  columns.set_delimiter("ab");
  CHECK(CsvFault(columns, header) ==
        "spec.data.columns.delimiter: \"ab\" must be one character (no "
        "quote, no line end), or \"\\t\"");
}

TEST_CASE("mutated lines never crash and never half-change a batch", "[data][fuzz]") {
  std::vector<std::unique_ptr<LineParser>> parsers;
  parsers.push_back(MakeCriteoParser(IntegerFeatures::kDense, 0));
  parsers.push_back(MakeCriteoParser(IntegerFeatures::kBucket, 0));
  parsers.push_back(MakeLibsvmParser(5));
  parsers.push_back(Csv(Columns(), "id,y,a,b,c"));
  const std::vector<std::string> seeds = {CriteoLine(), CriteoLine(), "1 5:1 6:2.5 7:1e3 # x",
                                          "9,1,2.5,\"a\"\"b\",c"};
  const std::string alphabet("\t ,:\"#-+.0123456789eExnaif\r\0\xff\x80", 31);
  uint64_t random = 0;
  const auto draw = [&](uint64_t below) { return Mix64(++random) % below; };
  uint64_t examples = 0;
  uint64_t bad = 0;
  for (int round = 0; round < 60'000; ++round) {
    const size_t which = round % parsers.size();
    std::string line = seeds[which];
    for (uint64_t n = draw(4); n-- > 0 && !line.empty();) {
      const size_t at = draw(line.size());
      const char c = alphabet[draw(alphabet.size())];
      switch (draw(4)) {
        case 0:
          line[at] = c;
          break;
        case 1:
          line.insert(at, 1, c);
          break;
        case 2:
          line.erase(at, 1 + draw(3));
          break;
        default:
          line.insert(at, line.substr(draw(line.size()), draw(20)));
      }
    }
    Batch batch = Started(*parsers[which]);
    LineError error;
    // An exact copy, so that a read past the end is seen by a sanitizer.
    const std::vector<char> exact(line.begin(), line.end());
    const LineOutcome outcome = parsers[which]->Parse({exact.data(), exact.size()}, &batch, &error);
    if (outcome == LineOutcome::kExample) {
      ++examples;
      REQUIRE(batch.size == 1);
      REQUIRE(batch.labels.size() == 1);
      REQUIRE(batch.dense.size() == batch.numeric);
      REQUIRE(batch.offsets == std::vector<uint32_t>{0, uint32_t(batch.keys.size())});
      for (const float x : batch.dense) REQUIRE(std::isfinite(x));
      for (const float x : batch.values) REQUIRE(std::isfinite(x));
    } else {
      bad += outcome == LineOutcome::kBad;
      REQUIRE(batch.size == 0);
      REQUIRE(batch.keys.empty());
      REQUIRE(batch.dense.empty());
      REQUIRE(batch.values.empty());
    }
  }
  CHECK(examples > 10'000);
  CHECK(bad > 10'000);
}

}  // namespace strata
