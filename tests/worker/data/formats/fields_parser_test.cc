#include "worker/data/formats/fields_parser.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/natural_log.h"
#include "proto/job/job_spec.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/vocabulary.h"

namespace strata {
namespace {

// A resolved csv job over these fields, each in protobuf's text form; label: column `y`.
JobSpec JobOf(const std::vector<std::string>& fields, const std::string& more = "") {
  TrainingJob job;
  std::string text =
      "api_version: 'strata/v1' kind: 'TrainingJob' metadata { name: 'j' } spec { "
      "data { format: 'csv' train: 't' } model { type: 'deepfm' } labels { name: 'y' } " +
      more;
  for (const std::string& field : fields) text += " fields { " + field + " }";
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text + " }", &job));
  JobSpec with_sequences = job.spec();
  for (FieldConfig& f : *job.mutable_spec()->mutable_fields()) {
    if (f.kind() != "sequence") continue;
    f.set_kind("categorical");
    f.clear_max_length();
    f.clear_truncate();
    f.clear_separator();
  }
  const absl::Status status = ResolveJob(job);
  INFO(status.ToString());
  REQUIRE(status.ok());
  for (int i = 0; i < with_sequences.fields_size(); ++i) {
    const FieldConfig& f = with_sequences.fields(i);
    if (f.kind() != "sequence") continue;
    FieldConfig& resolved = *job.mutable_spec()->mutable_fields(i);
    resolved.set_kind("sequence");
    resolved.set_max_length(f.max_length());
    resolved.set_truncate(f.truncate());
    resolved.set_separator(f.separator().empty() ? "|" : f.separator());
  }
  return job.spec();
}

std::unique_ptr<LineParser> ParserOf(const JobSpec& spec, const std::string& header,
                                     const Vocabularies& vocabularies = {}) {
  auto parser = MakeFieldsParser(spec, header, vocabularies);
  INFO(parser.status().ToString());
  REQUIRE(parser.ok());
  return *std::move(parser);
}

Batch Parse(const LineParser& parser, const std::vector<std::string>& lines) {
  Batch batch;
  parser.Start(&batch);
  for (const std::string& line : lines) {
    LineError error;
    INFO(line << ": " << error.reason);
    REQUIRE(parser.Parse(line, &batch, &error) == LineOutcome::kExample);
  }
  return batch;
}

// What is wrong with a line; the batch is as it was.
std::string Fault(const LineParser& parser, const std::string& good, const std::string& line) {
  Batch batch = Parse(parser, {good});
  const Batch before = batch;
  LineError error;
  REQUIRE(parser.Parse(line, &batch, &error) == LineOutcome::kBad);
  CHECK(batch.keys == before.keys);
  CHECK(batch.values == before.values);
  CHECK(batch.fields == before.fields);
  CHECK(batch.dense == before.dense);
  CHECK(batch.labels == before.labels);
  CHECK(batch.offsets == before.offsets);
  CHECK(batch.sequence_first == before.sequence_first);
  CHECK(batch.sequence_length == before.sequence_length);
  return std::to_string(error.column) + ": " + error.reason;
}

uint64_t Key(const std::string& column, const std::string& value, uint64_t hash_seed) {
  return FeatureKey(NamedFieldSeed(hash_seed, column), value);
}
uint64_t Key(const std::string& column, const std::string& value) { return Key(column, value, 0); }

TEST_CASE("fields come in their order, whatever the order of columns", "[data][csv]") {
  const JobSpec spec =
      JobOf({"name: 'item' column: 'i' kind: 'categorical'", "name: 'n' kind: 'numeric'",
             "name: 'user' column: 'u' kind: 'categorical' hash_seed: 7",
             "name: 'm' column: 'n' kind: 'numeric' transform { type: 'log' }"});
  const auto parser = ParserOf(spec, "n,unused,u,y,i");
  CHECK(parser->numeric() == 2);
  const Batch batch = Parse(*parser, {"2.5,x,ann,1,book", ",,\"a \"\"b\"\", c\",0,"});
  CHECK(batch.size == 2);
  CHECK(batch.labels == std::vector<float>{1, 0});
  CHECK(batch.keys == std::vector<uint64_t>{Key("i", "book"), Key("u", "ann", 7), Key("i", ""),
                                            Key("u", "a \"b\", c", 7)});
  CHECK(batch.fields == std::vector<uint32_t>{0, 1, 0, 1});
  CHECK(batch.dense ==
        std::vector<float>{2.5f, static_cast<float>(ops::NaturalLog(3.5)), 0.0f, 0.0f});
}

TEST_CASE("numbers by their transforms", "[data][csv]") {
  const std::string head = "kind: 'numeric' column: 'n' ";
  const JobSpec spec =
      JobOf({head + "name: 'log' transform { type: 'log' }",
             head + "name: 'standard' transform { type: 'standardise' mean: 10 deviation: 4 }",
             head + "name: 'clip' transform { type: 'clip' min: -1 max: 3 } default_value: '2'",
             head + "name: 'plain' default_value: '8'",
             head + "name: 'bucket' transform { type: 'bucketise' bounds: [0, 5, 7.5] }"});
  const auto parser = ParserOf(spec, "y,n");
  const Batch batch = Parse(*parser, {"0, 12 ", "0,-3", "0,", "0,5", "0,0", "0,4.999"});
  const auto log = [](double x) { return static_cast<float>(ops::NaturalLog(1 + x)); };
  CHECK(batch.dense == std::vector<float>{log(12),    0.5f,
                                          3,          12,  //
                                          0,          -3.25f,
                                          -1,         -3,  //
                                          0,          0,
                                          2,          8,  // missing
                                          log(5),     -1.25f,
                                          3,          5,  //
                                          0,          -2.5f,
                                          0,          0,  //
                                          log(4.999), static_cast<float>(-5.001 / 4),
                                          3,          4.999f});
  const uint64_t seed = NamedFieldSeed(0, "n");
  const double inf = std::numeric_limits<double>::infinity();
  const uint64_t middle = BucketKey(seed, 0, 5);
  CHECK(batch.keys == std::vector<uint64_t>{BucketKey(seed, 7.5, inf), BucketKey(seed, -inf, 0),
                                            MissingBucketKey(seed), BucketKey(seed, 5, 7.5), middle,
                                            middle});
  const JobSpec huge =
      JobOf({head + "name: 'f' transform { type: 'standardise' mean: 0 deviation: 1e-38 }"});
  CHECK(Fault(*ParserOf(huge, "y,n"), "0,1", "0,1e10") ==
        "3: column n: \"1e10\" becomes inf by the transform of field f");
}

// A job with such a default is refused; older versions accepted it.
TEST_CASE("a default that no line can have is told where a line needs it", "[data][csv]") {
  JobSpec spec = JobOf({"kind: 'numeric' column: 'n' name: 'f'"});
  const auto fault = [&](const char* value) {
    spec.mutable_fields(0)->set_default_value(value);
    return Fault(*ParserOf(spec, "y,n"), "0,1", "0,");
  };
  CHECK(fault(" 5") ==
        "3: column n is empty, and \" 5\", the defaultValue of field f, is not a finite number");
  CHECK(fault("1e39") ==
        "3: column n is empty, and \"1e39\", the defaultValue of field f, is out of float32's "
        "range (3.4e38); scale the numbers, or write 0 for tiny ones");
  TransformConfig& t = *spec.mutable_fields(0)->mutable_transform();
  t.set_type("bucketise");
  t.add_bounds(1);
  CHECK(fault("x") ==
        "3: column n is empty, and \"x\", the defaultValue of field f, is not a finite number");
  t.Clear();
  t.set_type("standardise");
  t.set_mean(0);
  t.set_deviation(1e-38);
  CHECK(fault("9e9") == "3: column n: \"9e9\" becomes inf by the transform of field f");
}

TEST_CASE("values, their weights and their pooling", "[data][csv]") {
  const std::string multi = "kind: 'multiValued' column: 't' ";
  const JobSpec spec =
      JobOf({multi + "name: 'sum' weight_separator: ':'",
             multi + "name: 'mean' weight_separator: ':' pooling: 'mean'",
             "kind: 'multiValued' name: 'max' column: 'u' pooling: 'max'",
             "kind: 'multiValued' name: 'some' column: 'u' default_value: 'none'"});
  const auto parser = ParserOf(spec, "y,t,u");
  const Batch batch = Parse(*parser, {"1,a:0.5|b|c:1.5,x||y", "0,,"});
  const uint64_t a = Key("t", "a"), b = Key("t", "b"), c = Key("t", "c");
  const uint64_t x = Key("u", "x"), y = Key("u", "y");
  CHECK(batch.keys == std::vector<uint64_t>{a, b, c, a, b, c, x, y, x, y, Key("u", "none")});
  CHECK(batch.values == std::vector<float>{0.5f, 1, 1.5f, 0.5f / 3, 1.0f / 3, 0.5f, 1, 1, 1, 1, 1});
  CHECK(batch.fields == std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3});
  CHECK(batch.offsets == std::vector<uint32_t>{0, 10, 11});
  const std::string good = "1,a,x";
  CHECK(Fault(*parser, good, "1,a:0.5|b:z,x") ==
        "3: column t: the weight of \"b:z\" is not a finite number");
  CHECK(Fault(*parser, good, "1,a|:2,x") == "3: column t: \":2\" is a weight without a value");
  CHECK(Fault(*parser, good, "1,a:nan,x") ==
        "3: column t: the weight of \"a:nan\" is not a finite number");
  CHECK(Fault(*parser, good, "1,a:0|b:-0,x") ==
        "3: column t: the weights have the sum 0, by which field mean divides (pooling: mean)");
  CHECK(Fault(*parser, good, "1,a:2|b:-1,x") ==
        "3: column t: the weight of \"b:-1\" is negative, and field mean divides by their sum "
        "(pooling: mean); sum takes any sign");
  // A sum may have negative ones.
  const auto sum = ParserOf(JobOf({multi + "name: 'sum' weight_separator: ':'"}), "y,t");
  CHECK(Parse(*sum, {"1,a:2|b:-3.5"}).values == std::vector<float>{2, -3.5f});
}

TEST_CASE("sequences keep their order and are cut at the side that is named", "[data][csv]") {
  const std::string sequence = "kind: 'sequence' column: 's' max_length: 3 ";
  const JobSpec spec =
      JobOf({"name: 'item' kind: 'categorical'", sequence + "name: 'oldest' truncate: 'oldest'",
             sequence + "name: 'newest' truncate: 'newest'"});
  const auto parser = ParserOf(spec, "y,item,s");
  CHECK(parser->sequences() == 2);
  const Batch batch = Parse(*parser, {"1,i,a|b|a|c|d", "0,i,", "1,i,b||a"});
  const auto key = [](const char* value) { return Key("s", value); };
  const uint64_t i = Key("item", "i");
  CHECK(batch.keys == std::vector<uint64_t>{i, key("a"), key("c"), key("d"),  //
                                            key("a"), key("b"), key("a"),     //
                                            i, i, key("b"), key("a"), key("b"), key("a")});
  CHECK(batch.sequences == 2);
  CHECK(batch.sequence_first == std::vector<uint32_t>{1, 4, 8, 8, 9, 11});
  CHECK(batch.sequence_length == std::vector<uint32_t>{3, 3, 0, 0, 2, 2});
  CHECK(batch.offsets == std::vector<uint32_t>{0, 7, 8, 13});
  // A default stands for a sequence without a value, not for a value that a sequence lacks.
  const auto full = ParserOf(JobOf({sequence + "name: 'clicks' default_value: 'none'"}), "y,s");
  const Batch filled = Parse(*full, {"1,", "0,a||b", "1,|"});
  CHECK(filled.keys == std::vector<uint64_t>{key("none"), key("a"), key("b"), key("none")});
  CHECK(filled.sequence_length == std::vector<uint32_t>{1, 2, 1});
  const auto strict = ParserOf(JobOf({sequence + "name: 'clicks' truncate: 'never'"}), "y,s");
  CHECK(Fault(*strict, "0,a|b|c", "1,a|b|c|d") ==
        "3: column s: 4 values, and sequence clicks has at most 3; raise its maxLength, or set "
        "truncate to oldest or newest");
}

Vocabularies VocabularyOf(const std::string& text) {
  auto vocabulary = Vocabulary::Parse(text, "v.txt");
  INFO(vocabulary.status().ToString());
  REQUIRE(vocabulary.ok());
  return {{"v.txt", *vocabulary}};
}

TEST_CASE("values of a vocabulary are their lines, others share buckets", "[data][csv]") {
  const JobSpec spec =
      JobOf({"name: 'c' kind: 'categorical' vocabulary { file: 'v.txt' out_of_vocabulary: 2 }"});
  const auto keys = [&](const std::string& file) {
    return Parse(*ParserOf(spec, "y,c", VocabularyOf(file)),
                 {"0,one", "0,two words", "0,", "0,a", "0,other", "0,more", "0,still more"})
        .keys;
  };
  const std::vector<uint64_t> got = keys("one\r\ntwo words\n");
  const uint64_t seed = NamedFieldSeed(0, "c");
  CHECK(got[0] == VocabularyKey(seed, 1));
  CHECK(got[1] == VocabularyKey(seed, 2));
  CHECK(got[2] == VocabularyKey(seed, 0));
  bool first = false, second = false;
  for (size_t i = 3; i < got.size(); ++i) {
    first |= got[i] == VocabularyKey(seed, 0xffffffff);
    second |= got[i] == VocabularyKey(seed, 0xfffffffe);
    CHECK(got[i] >= VocabularyKey(seed, 0xfffffffe));
  }
  CHECK(first);
  CHECK(second);
  // A file that grows leaves all keys but those of what is new.
  const std::vector<uint64_t> grown = keys("one\ntwo words\nother");
  CHECK(grown[4] == VocabularyKey(seed, 3));
  for (const size_t i : {0, 1, 2, 3, 5, 6}) CHECK(grown[i] == got[i]);
}

TEST_CASE("a vocabulary says which line is wrong", "[data][csv]") {
  const auto fault = [](const std::string& text) {
    return std::string(Vocabulary::Parse(text, "v.txt").status().message());
  };
  CHECK(fault("a\nb\nc\nb\n") ==
        "vocabulary file v.txt:4: \"b\" is in line 2 too; remove one of the two lines");
  CHECK(fault("a\n\nb\n") ==
        "vocabulary file v.txt:2: the line is empty; remove it (a missing value has a row of its "
        "own)");
  CHECK(fault("") == "vocabulary file v.txt is empty; write a value a line to it");
  CHECK(fault("a") == "");
}

TEST_CASE("fingerprints are of a vocabulary's values in their order", "[data][csv]") {
  const auto parsed = [](const std::string& text) {
    auto vocabulary = Vocabulary::Parse(text, "v.txt");
    REQUIRE(vocabulary.ok());
    return *vocabulary;
  };
  const auto abc = parsed("a\nbee\nc\n");
  const std::vector<std::string> of = abc->Fingerprints({1, 2, 3});
  // XXH3_128bits of "a\n", "a\nbee\n" and so on, each in one call.
  CHECK(of == std::vector<std::string>{"5c73e7e3dcbb0395e841f27363849a18",
                                       "bc561df84797339c7eacd8107acbfcb3",
                                       "f3c0265518bcf2f8bdc8915822862725"});
  CHECK(parsed("\xef\xbb\xbf"
               "a\r\nbee\r\nc")
            ->Fingerprints({3})
            .front() == of[2]);
  CHECK(parsed("bee\na\nc\n")->Fingerprints({3}).front() != of[2]);
  CHECK(parsed("a\nbe\nec\n")->Fingerprints({3}).front() != of[2]);
  CHECK(parsed("a\nbee\nc\nd")->Fingerprints({2, 3}) == std::vector<std::string>{of[1], of[2]});
  CHECK(abc->Beginning(2) == "a\nbee\n");
  CHECK(parsed("\xef\xbb\xbf"
               "a\r\nb")
            ->Beginning(2) == "a\r\nb");
}

TEST_CASE("fields of one table share rows by value", "[data][csv]") {
  const JobSpec spec = JobOf({"name: 'item' kind: 'categorical' table: 'item'",
                              "name: 'clicks' kind: 'multiValued' table: 'item'",
                              "name: 'user' kind: 'categorical' table: 'user'"},
                             "tables { name: 'item' } tables { name: 'user' }");
  const Batch batch = Parse(*ParserOf(spec, "y,user,item,clicks"), {"1,a,a,b|a"});
  const uint64_t a = Key("item", "a");
  CHECK(batch.keys == std::vector<uint64_t>{a, Key("item", "b"), a, Key("user", "a")});
}

TEST_CASE("a bucket shares rows with the same bounds alone", "[data][csv]") {
  const std::string bucket = "kind: 'numeric' table: 't' transform { type: 'bucketise' bounds: ";
  const JobSpec spec = JobOf({"name: 'a' kind: 'categorical' table: 't'",
                              bucket + "[1, 2, 3] } name: 'p'", bucket + "[2, 3, 4] } name: 'q'",
                              bucket + "[-0.0] } name: 'r'", bucket + "[0.0] } name: 's'"},
                             "tables { name: 't' }");
  const auto keys = [parser = ParserOf(spec, "y,a,p,q,r,s")](const std::string& line) {
    return Parse(*parser, {line}).keys;
  };
  const std::vector<uint64_t> third = keys("1,3,3.5,9,-1,-1");
  CHECK(third[0] == Key("t", "3"));
  CHECK(third[0] != third[1]);  // the third bucket is not the value 3
  CHECK(third[1] != third[2]);  // nor that of other bounds
  CHECK(third[3] == third[4]);
  const std::vector<uint64_t> between = keys("1,3,2.5,2.5,0,0");
  CHECK(between[1] == between[2]);  // 2 to 3 of both
  CHECK(between[3] == between[4]);
  const std::vector<uint64_t> missing = keys("1,,,,,");
  CHECK(missing[0] == Key("t", ""));
  CHECK((missing[1] != missing[0] && missing[1] == missing[2]));
}

TEST_CASE("columns that are not there are named", "[data][csv]") {
  const JobSpec spec = JobOf({"name: 'price' column: 'prize' kind: 'numeric'"});
  const auto fault = [&](const std::string& header) {
    return std::string(MakeFieldsParser(spec, header, {}).status().message());
  };
  CHECK(
      fault("y,price") ==
      "spec.fields[0].column: \"prize\" is no column of the header, which names \"y\", \"price\"; "
      "name one of these, or give the file that column");
  CHECK(
      fault("label,prize") ==
      "spec.labels[0].column: \"y\" is no column of the header, which names \"label\", \"prize\"; "
      "name one of these, or give the file that column");
  const auto fault_of = [](const JobSpec& job) {
    return std::string(MakeFieldsParser(job, "y,prize,w", {}).status().message());
  };
  CHECK(fault_of(JobOf({"name: 'price' column: '0' kind: 'numeric'"})) ==
        "spec.fields[0].column: '0' of field 'price' is the column of a label or of the weight in "
        "the data; name another column");
  CHECK(fault_of(JobOf({"name: 'w' kind: 'numeric'"}, "sample_weight: '2'")) ==
        "spec.fields[0].column: 'w' of field 'w' is the column of a label or of the weight in the "
        "data; name another column");
  CHECK(fault_of(JobOf({"name: 'w' kind: 'numeric'"}, "sample_weight: '0'")) ==
        "spec.sampleWeight: '0' is the column of a label in the data; name another column");
  CHECK(fault_of(JobOf({"name: 'w' kind: 'numeric'"}, "labels { name: 'z' column: '0' }")) ==
        "spec.labels[1].column: '0' is the column of an earlier label in the data; name another "
        "column");
  CHECK(Fault(*ParserOf(spec, "y,prize"), "0,1", "0,cheap") ==
        "3: column prize: \"cheap\" is not a finite number");
  CHECK(Fault(*ParserOf(spec, "y,prize"), "0,1", "0,-1e39") ==
        "3: column prize: \"-1e39\" is out of float32's range (3.4e38); scale the numbers, or "
        "write 0 for tiny ones");
  CHECK(Fault(*ParserOf(spec, "y,prize"), "0,1", "0,1,2") == "1: found 3 columns, expected 2");
}

// The header was searched for each column, for each file.
TEST_CASE("as many columns as a job may have are found in no time", "[data][csv]") {
  JobSpec spec = JobOf({"name: 'c0' kind: 'numeric'"});
  const FieldConfig first = spec.fields(0);
  std::string header = "y", line = "1";
  for (int i = 1; i < 65536; ++i) {
    FieldConfig& field = *spec.add_fields();
    field = first;
    field.set_name(absl::StrCat("c", i));
    field.set_column(field.name());
    absl::StrAppend(&header, ",c", 65536 - i);
    absl::StrAppend(&line, ",", 65536 - i);
  }
  const auto parser = ParserOf(spec, header + ",c0");
  const Batch batch = Parse(*parser, {line + ",0"});
  REQUIRE(batch.dense.size() == 65536);
  for (size_t i = 0; i < 65536; i += 4369) CHECK(batch.dense[i] == static_cast<float>(i));
}

}  // namespace
}  // namespace strata
