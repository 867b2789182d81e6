// Lines without a label, of every format, as they are scored.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/parser_factory.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

JobSpec Job(const std::string& format) {
  JobSpec spec;
  spec.mutable_data()->set_format(format);
  return spec;
}

// Columns y and w, a number and a category.
JobSpec Csv() {
  JobSpec spec = Job("csv");
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.set_label("y");
  columns.add_numeric("n");
  columns.add_categorical("c");
  return spec;
}

// The same by fields, with two labels and a weight.
JobSpec Fields() {
  JobSpec spec = Job("csv");
  for (const char* name : {"y", "z"}) {
    LabelConfig& label = *spec.add_labels();
    label.set_name(name);
    label.set_column(name);
    label.set_kind(name[0] == 'y' ? "binary" : "real");
    label.set_loss(name[0] == 'y' ? "logloss" : "squared");
  }
  spec.set_sample_weight("w");
  for (const char* name : {"n", "c"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    field.set_kind(name[0] == 'n' ? "numeric" : "categorical");
  }
  return spec;
}

DataShape Shape() {
  DataShape shape;
  shape.set_fields(9);
  return shape;
}

// The examples of `lines`; the first bad line's reason goes to `fault`.
Batch Scored(const JobSpec& spec, const std::string& first_line,
             const std::vector<std::string>& lines, std::string* fault = nullptr,
             const DataShape& shape = Shape()) {
  const auto parser = MakeScoringParser(spec, shape, first_line, {});
  INFO(parser.status());
  REQUIRE(parser.ok());
  Batch batch;
  (*parser)->Start(&batch);
  for (const std::string& line : lines) {
    LineError error;
    if ((*parser)->Parse(line, &batch, &error) == LineOutcome::kBad && fault != nullptr) {
      *fault = error.reason;
    }
  }
  LineParser::Finish(&batch);
  return batch;
}

// The same features whatever is said of labels.
void CheckSameFeatures(const Batch& a, const Batch& b) {
  CHECK(a.size == b.size);
  CHECK(a.offsets == b.offsets);
  CHECK(a.keys == b.keys);
  CHECK(a.values == b.values);
  CHECK(a.fields == b.fields);
  CHECK(a.dense == b.dense);
}

bool None(float label) { return std::isnan(label); }

TEST_CASE("a line of tokens may begin with its first feature", "[data][scoring]") {
  const struct {
    const char* format;
    std::vector<std::string> labelled, bare;
  } cases[] = {{"libfm", {"1 3:1 4:0.5", "0 7:2"}, {"3:1 4:0.5", " 7:2 # of nobody"}},
               {"libsvm", {"-1 3:1", "1 9:1"}, {"3:1", "9:1"}},
               {"libffm", {"1 2:5:1 0:3:2", "0 1:1:1"}, {"2:5:1 0:3:2", "\t1:1:1"}}};
  for (const auto& c : cases) {
    INFO(c.format);
    const JobSpec spec = Job(c.format);
    const Batch labelled = Scored(spec, "", c.labelled), bare = Scored(spec, "", c.bare);
    REQUIRE(bare.size == 2);
    CheckSameFeatures(labelled, bare);
    CHECK((labelled.labels[0] == (c.labelled[0][0] == '1') && !None(labelled.labels[1])));
    CHECK((None(bare.labels[0]) && None(bare.labels[1])));
    // What is neither a label nor a feature is bad, and training wants its label.
    std::string fault;
    CHECK(Scored(spec, "", {"2 3:1"}, &fault).size == 0);
    CHECK(fault == "label \"2\" is none of 0, 1, -1");
    const auto training = MakeLineParser(spec, Shape(), "");
    REQUIRE(training.ok());
    Batch batch;
    (*training)->Start(&batch);
    LineError error;
    CHECK((*training)->Parse(c.bare[0], &batch, &error) == LineOutcome::kBad);
  }
}

std::string Criteo(const std::string& before, char separator) {
  std::string line = before;
  for (int c = 0; c < 39; ++c) {
    if (c > 0) line += separator;
    line += c < 13 ? std::to_string(c * 7) : "v" + std::to_string(c);
  }
  return line;
}

TEST_CASE("criteo's lines may have one column less, all of them, or an empty label",
          "[data][scoring]") {
  const JobSpec spec = Job("criteo");
  const std::string labelled = Criteo("1\t", '\t'), empty = Criteo("\t", '\t'),
                    bare = Criteo("", '\t');
  const Batch both = Scored(spec, labelled, {labelled, empty});
  REQUIRE(both.size == 2);
  CHECK((both.labels[0] == 1 && None(both.labels[1])));
  const Batch without = Scored(spec, bare, {bare, bare});
  CHECK((without.size == 2 && None(without.labels[0])));
  CheckSameFeatures(both, without);
  // A line that lost a column is not taken for one without a label, nor the other way round.
  std::string fault;
  CHECK(Scored(spec, labelled, {bare}, &fault).size == 0);
  CHECK(fault ==
        "found 39 columns parted by tabs, criteo has 40 (label, 13 integers, 26 "
        "categories)");
  CHECK(Scored(spec, bare, {labelled}, &fault).size == 0);
  CHECK(fault ==
        "found 40 columns parted by tabs, the first line has 39 (no label, 13 integers, "
        "26 categories)");
  const auto training = MakeLineParser(spec, Shape(), "");
  REQUIRE(training.ok());
  Batch batch;
  (*training)->Start(&batch);
  LineError error;
  for (const std::string& line : {empty, bare}) {
    CHECK((*training)->Parse(line, &batch, &error) == LineOutcome::kBad);
  }
}

TEST_CASE("the header of criteo_csv may lack the label", "[data][scoring]") {
  std::string header;
  for (int i = 1; i <= 13; ++i) header += "I" + std::to_string(i) + ",";
  for (int c = 1; c <= 26; ++c) header += "C" + std::to_string(c) + (c < 26 ? "," : "");
  const JobSpec spec = Job("criteo_csv");
  const std::string bare = Criteo("", ',');
  const Batch without = Scored(spec, header, {bare, bare});
  CHECK((without.size == 2 && None(without.labels[0])));
  const Batch both = Scored(spec, "Label," + header, {"0," + bare, "," + bare});
  REQUIRE(both.size == 2);
  CHECK((both.labels[0] == 0 && None(both.labels[1])));
  CheckSameFeatures(both, without);
  CHECK(MakeLineParser(spec, Shape(), header).status().message().find("column Label is missing") !=
        std::string::npos);
}

TEST_CASE("columns of labels and weights may be empty or not there", "[data][scoring]") {
  const Batch labelled = Scored(Csv(), "c,y,n", {"a,1,2", "b,,3"});
  REQUIRE(labelled.size == 2);
  CHECK((labelled.labels[0] == 1 && None(labelled.labels[1])));
  const Batch bare = Scored(Csv(), "n,c", {"2,a", "3,b"});
  CHECK((bare.size == 2 && None(bare.labels[0]) && None(bare.labels[1])));
  CheckSameFeatures(labelled, bare);
  std::string fault;
  CHECK(Scored(Csv(), "c,y,n", {"a,yes,2"}, &fault).size == 0);
  CHECK(fault ==
        "column y: label \"yes\" is none of 0, 1, -1; spec.labels may name a number (kind: real, "
        "count), or a label that lines may lack");

  for (const bool by_fields : {false, true}) {
    JobSpec spec = Fields();
    if (!by_fields) {
      spec.clear_fields();
      *spec.mutable_data()->mutable_columns() = Csv().data().columns();
      spec.mutable_data()->mutable_columns()->clear_label();
    }
    const Batch all = Scored(spec, "z,w,c,y,n", {"2.5,3,a,1,2", ",,b,,3"});
    REQUIRE(all.labels.size() == 4);
    CHECK((all.labels[0] == 1 && all.labels[1] == 2.5f));
    CHECK((None(all.labels[2]) && None(all.labels[3])));
    CHECK(all.weights == std::vector<float>{3, 1});
    const Batch one = Scored(spec, "z,c,n", {"2.5,a,2", ",b,3"});
    REQUIRE(one.labels.size() == 4);
    CHECK((None(one.labels[0]) && one.labels[1] == 2.5f));
    CHECK((None(one.labels[2]) && None(one.labels[3])));
    CHECK(one.weights == std::vector<float>{1, 1});
    const Batch none = Scored(spec, "c,n", {"a,2", "b,3"});
    REQUIRE(none.labels.size() == 4);
    for (const float label : none.labels) CHECK(None(label));
    CheckSameFeatures(all, none);
    CheckSameFeatures(all, one);
    // To train, and of what a model reads, every column must be there.
    CHECK_FALSE(MakeLineParser(spec, Shape(), "z,c,n").ok());
    const auto lacks = MakeScoringParser(spec, Shape(), "c,y", {}).status();
    CHECK(lacks.message().find("\"n\" is no column of the header") != std::string::npos);
    CHECK_FALSE(MakeScoringParser(spec, Shape(), "c,n,y,y", {}).ok());  // which one?
  }
}

constexpr char kTwoOfThree[] =
    "found 2 columns, expected 3; without a header columns go by their places: leave one that is "
    "not known empty";

// Of checkpoints that do not say how many columns their training data had.
TEST_CASE("without a header the label's position may be behind the last column",
          "[data][scoring]") {
  JobSpec spec = Csv();
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.set_header(false);
  columns.set_label("2");
  columns.set_numeric(0, "0");
  columns.set_categorical(0, "1");
  const Batch bare = Scored(spec, "2,a", {"2,a"});
  CHECK((bare.size == 1 && None(bare.labels[0])));
  CheckSameFeatures(Scored(spec, "2,a,1", {"2,a,1"}), bare);
  columns.set_label("first");
  CHECK_FALSE(MakeScoringParser(spec, Shape(), "2,a", {}).ok());
}

TEST_CASE("without a header a label in the midst keeps its place, on lines to score too",
          "[data][scoring]") {
  // Columns 0 and 2 are read, label and weight lie between and before them.
  JobSpec short_form = Csv();
  ColumnsSpec& columns = *short_form.mutable_data()->mutable_columns();
  columns.set_label("1");
  columns.set_numeric(0, "0");
  columns.set_categorical(0, "2");
  JobSpec fields = Fields();
  fields.mutable_labels(0)->set_column("1");
  fields.mutable_labels(1)->set_column("3");  // behind all that is read
  fields.mutable_fields(0)->set_column("0");
  fields.mutable_fields(1)->set_column("2");
  fields.set_sample_weight("");
  const struct {
    JobSpec spec;
    std::string of;
  } cases[] = {{short_form, "spec.data.columns.categorical[0]: "},
               {fields, "spec.fields[1].column: "}};
  for (auto [spec, of] : cases) {
    INFO(of);
    spec.mutable_data()->mutable_columns()->set_header(false);
    const Batch empty = Scored(spec, "2,,a", {"2,,a"});
    CHECK((empty.size == 1 && None(empty.labels[0])));
    CheckSameFeatures(Scored(spec, "2,1,a", {"2,1,a"}), empty);
    const auto lacks = MakeScoringParser(spec, Shape(), "2,a", {}).status();
    CHECK(lacks.message() ==
          of + "position 2 is past the last column, 1; give one that is there, or a file with that "
               "column; without a header what a line to score lacks may only lie behind all that "
               "the model reads: keep column 1 in its place, and leave it empty");
    // Nothing of labels is at fault.
    const auto less = MakeScoringParser(spec, Shape(), "2", {}).status();
    CHECK(less.message() == of +
                                "position 2 is past the last column, 0; give one that is there, or "
                                "a file with that column");
    // Every line has as many columns as the first.
    std::string fault;
    CHECK(Scored(spec, "2,,a", {"2,1"}, &fault).size == 0);
    CHECK(fault == kTwoOfThree);
  }
}

TEST_CASE("without a header a line has as many columns as the training data had",
          "[data][scoring]") {
  // Columns 0 and 2 are read, nobody names column 1, and the label lies behind them.
  JobSpec short_form = Csv();
  ColumnsSpec& columns = *short_form.mutable_data()->mutable_columns();
  columns.set_label("3");
  columns.set_numeric(0, "0");
  columns.set_categorical(0, "2");
  columns.add_ignored("*");
  JobSpec fields = Fields();
  fields.mutable_labels()->RemoveLast();
  fields.mutable_labels(0)->set_column("3");
  fields.mutable_fields(0)->set_column("0");
  fields.mutable_fields(1)->set_column("2");
  fields.set_sample_weight("");
  DataShape shape = Shape();
  shape.set_columns(4);
  for (JobSpec spec : {short_form, fields}) {
    spec.mutable_data()->mutable_columns()->set_header(false);
    std::string fault;
    const Batch scored = Scored(spec, "2,x,a,1", {"2,x,a,1", "3,x,b,"}, &fault, shape);
    CHECK(fault.empty());
    REQUIRE(scored.size == 2);
    CHECK((scored.labels[0] == 1 && None(scored.labels[1])));
    // A column less may be any of them, in the first line too: none is looked for in its place.
    for (const auto& [line, found] :
         {std::pair{"2,a,1", "3"}, std::pair{"2,x,a", "3"}, std::pair{"2,x,a,1,9", "5"}}) {
      INFO(line);
      fault.clear();
      CHECK(Scored(spec, line, {line}, &fault, shape).size == 0);
      CHECK(fault == std::string("found ") + found +
                         " columns, expected 4; without a header columns go by their places: leave "
                         "one that is not known empty");
    }
    // It is so of lines to learn from: of a new day, and of held-out files.
    const auto training = MakeLineParser(spec, shape, "2,a,1");
    REQUIRE(training.ok());
    Batch batch;
    (*training)->Start(&batch);
    LineError error;
    CHECK((*training)->Parse("2,a,1", &batch, &error) == LineOutcome::kBad);
    CHECK((*training)->Parse("2,x,a,1", &batch, &error) == LineOutcome::kExample);
  }
  // A header says which columns there are.
  CHECK(Scored(Csv(), "n,c", {"2,a"}, nullptr, shape).size == 1);
}

TEST_CASE("a number means the column of the training data's header", "[data][scoring]") {
  JobSpec short_form = Csv();
  ColumnsSpec& columns = *short_form.mutable_data()->mutable_columns();
  columns.set_label("0");
  columns.set_categorical(0, "2");
  columns.add_ignored("*");
  JobSpec fields = Fields();
  fields.mutable_labels(0)->set_column("0");
  fields.mutable_fields(1)->set_column("2");
  DataShape shape = Shape();
  for (const auto& [number, name] : {std::pair{"0", "y"}, std::pair{"2", "c"}}) {
    NumberedColumn* column = shape.add_numbered_columns();
    column->set_number(number);
    column->set_name(name);
  }
  for (const JobSpec& spec : {short_form, fields}) {
    const auto fault = [&](const std::string& header) {
      return std::string(MakeScoringParser(spec, shape, header, {}).status().message());
    };
    for (const char* header : {"y,n,c,z,w", "y,z,c,n", "y,w,c,n"}) CHECK(fault(header).empty());
    CHECK(Scored(spec, "y,n,c", {"1,2,a"}, nullptr, shape).keys ==
          Scored(spec, "y,z,c,n", {"1,,a,2"}, nullptr, shape).keys);
    // Without the label's column all behind it lie one place before: none is read for another.
    CHECK(
        fault("n,c,z").find("\"0\" is the column \"n\", and that of the training data is \"y\"") !=
        std::string::npos);
    CHECK(
        fault("y,c,n").find("\"2\" is the column \"n\", and that of the training data is \"c\"") !=
        std::string::npos);
    CHECK(fault("y,n").find("position 2 is past the last column") != std::string::npos);
  }
  // A label, or a weight, whose number was a name may be missing wherever other columns lie.
  JobSpec behind = Csv();
  behind.mutable_data()->mutable_columns()->set_label("1");
  behind.mutable_data()->mutable_columns()->add_ignored("*");
  DataShape named = Shape();
  NumberedColumn* one = named.add_numbered_columns();
  one->set_number("1");
  one->set_name("1");
  const Batch scored = Scored(behind, "n,c", {"2,a"}, nullptr, named);
  CHECK((scored.size == 1 && None(scored.labels[0])));
}

}  // namespace
}  // namespace strata
