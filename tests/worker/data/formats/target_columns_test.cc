// What a line is to predict, and what it weighs.
#include "worker/data/formats/target_columns.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/csv_parser.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/number_text.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

Batch Started(const LineParser& parser) {
  Batch batch;
  parser.Start(&batch);
  return batch;
}

// "column: reason" of a bad line.
std::string Fault(const LineParser& parser, const std::string& line) {
  Batch batch = Started(parser);
  LineError error;
  INFO(line);
  REQUIRE(parser.Parse(line, &batch, &error) == LineOutcome::kBad);
  CHECK((batch.size == 0 && batch.labels.empty() && batch.weights.empty()));
  return std::to_string(error.column) + ": " + error.reason;
}

// Csv with three labels and weights.
JobSpec LabelledCsv() {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.add_categorical("c");
  const auto add = [&spec](const char* name, const char* kind) {
    LabelConfig& label = *spec.add_labels();
    label.set_name(name);
    label.set_column(name);
    label.set_kind(kind);
  };
  add("click", "binary");
  add("stars", "real");
  add("visits", "count");
  spec.set_sample_weight("w");
  return spec;
}

std::unique_ptr<LineParser> Csv(const std::string& header) {
  auto parser = MakeCsvParser(LabelledCsv(), header);
  REQUIRE(parser.ok());
  return *std::move(parser);
}

TEST_CASE("csv lines with several labels and weights", "[data][csv]") {
  const auto parser = Csv("w,visits,c,stars,click");
  CHECK(parser->tasks() == 3);
  Batch batch = Started(*parser);
  CHECK(batch.tasks == 3);
  LineError error;
  REQUIRE(parser->Parse("0.5,3,x, -1.25 ,-1", &batch, &error) == LineOutcome::kExample);
  REQUIRE(parser->Parse(",,y,,1", &batch, &error) == LineOutcome::kExample);
  REQUIRE(parser->Parse("0.1,16777216,y,1e3,", &batch, &error) == LineOutcome::kExample);
  REQUIRE(batch.labels.size() == 9);
  CHECK((batch.labels[0] == 0 && batch.labels[1] == -1.25f && batch.labels[2] == 3));
  CHECK((batch.labels[3] == 1 && std::isnan(batch.labels[4]) && std::isnan(batch.labels[5])));
  CHECK((std::isnan(batch.labels[6]) && batch.labels[7] == 1000 && batch.labels[8] == 16777216));
  // In whole units of 2^-24.
  CHECK(batch.weights == std::vector<float>{0.5f, 1, 1677722 * 0x1p-24f});
  // A bad line takes its labels and its weight back.
  REQUIRE(parser->Parse("2,1,x,1,7", &batch, &error) == LineOutcome::kBad);
  CHECK((batch.labels.size() == 9 && batch.weights.size() == 3 && batch.size == 3));
}

TEST_CASE("faults of labels and weights", "[data][csv]") {
  const auto parser = Csv("w,visits,c,stars,click");
  CHECK(Fault(*parser, "1,1,x,1,2") ==
        "9: column click: label click: \"2\" is none of 0, 1, -1; an empty one is none");
  CHECK(Fault(*parser, "1,1,x,nan,1") ==
        "7: column stars: label stars: \"nan\" is not a finite number; leave it empty where there "
        "is none");
  CHECK(Fault(*parser, "1,1,x,1e39,1") ==
        "7: column stars: label stars: \"1e39\" is out of float32's range (3.4e38); scale the "
        "numbers, or write 0 for tiny ones");
  CHECK(Fault(*parser, "1,-1,x,1,1") ==
        "3: column visits: label visits: \"-1\" is no count (a whole number, 0 to 16777216); mend "
        "it, or give the label kind real");
  CHECK(Fault(*parser, "1,1.5,x,1,1").find("is no count") != std::string::npos);
  CHECK(Fault(*parser, "1,16777218,x,1,1").find("is no count") != std::string::npos);
  CHECK(Fault(*parser, "-0.5,1,x,1,1") ==
        "1: column w: weight \"-0.5\" is negative; give 0 to leave the line out");
  CHECK(Fault(*parser, "nan,1,x,1,1") ==
        "1: column w: weight \"nan\" is not a finite number; leave it empty for 1");
  CHECK(Fault(*parser, "65537,1,x,1,1") ==
        "1: column w: weight \"65537\" is above 65536; scale the weights of all lines");
  CHECK(Fault(*parser, "65536.0001,1,x,1,1").find("is above 65536") != std::string::npos);
  CHECK(Fault(*parser, "-1e-60,1,x,1,1").find("is negative") != std::string::npos);
  for (const char* tiny : {"1e-9", "1e-60"}) {
    CHECK(
        Fault(*parser, std::string(tiny) + ",1,x,1,1") ==
        std::string("1: column w: weight \"") + tiny +
            "\" is too small: in units of 2^-24 it would be 0; scale the weights of all lines, or "
            "give 0 to leave the line out");
  }
  CHECK(Fault(*parser, "1e-7,1,x,1,1").find("it would be 1.19209e-07;") != std::string::npos);
  for (const char* beyond : {"1e-400", "1e400"}) {
    CHECK(Fault(*parser, std::string(beyond) + ",1,x,1,1") ==
          std::string("1: column w: weight \"") + beyond +
              "\" is too large or too small; give 0, or 1e-5 to 65536");
  }
  const auto column_fault = [](const std::string& header) {
    return std::string(MakeCsvParser(LabelledCsv(), header).status().message());
  };
  CHECK(
      column_fault("w,visits,c,stars") ==
      "spec.labels[0].column: \"click\" is no column of the header, which names \"w\", \"visits\", "
      "\"c\", \"stars\"; name one of these, or give the file that column");
  CHECK(column_fault("visits,c,stars,click") ==
        "spec.sampleWeight: \"w\" is no column of the header, which names \"visits\", \"c\", "
        "\"stars\", \"click\"; name one of these, or give the file that column");
}

TEST_CASE("a weight is changed by 1/256 of it at most", "[data][csv]") {
  const auto parser = Csv("w,visits,c,stars,click");
  const auto weight_of = [&](const std::string& text) {
    Batch batch = Started(*parser);
    LineError error;
    INFO(text);
    REQUIRE(parser->Parse(text + ",1,x,1,1", &batch, &error) == LineOutcome::kExample);
    return batch.weights[0];
  };
  CHECK(weight_of("0") == 0);
  CHECK(weight_of("-0") == 0);
  CHECK(weight_of("65536") == 65536);
  CHECK(weight_of("5.9604644775390625e-08") == 0x1p-24f);
  for (double w = 0x1p-17; w <= 65536; w *= 1.37) {
    CHECK(std::fabs(weight_of(absl::StrFormat("%.17g", w)) / w - 1) <= 0x1p-8);
  }
}

TEST_CASE("a binary label is exactly 0, 1 or -1", "[data]") {
  float label = 7;
  for (const char* one : {"1", "1.0", "+1", "1e0", "10e-1"}) {
    INFO(one);
    CHECK((ParseLabel(one, &label) && label == 1));
  }
  for (const char* zero : {"0", "-1", "0.0", "-0", "-1e0"}) {
    INFO(zero);
    CHECK((ParseLabel(zero, &label) && label == 0));
  }
  for (const char* none : {"0.99999999", "1.00000001", "-1.00000001", "1e-60", "1e-400", "2", ""}) {
    INFO(none);
    CHECK_FALSE(ParseLabel(none, &label));
  }
}

}  // namespace
}  // namespace strata
