#include "worker/data/index/vocabularies.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "tests/worker/data/index/made_index.h"
#include "worker/data/index/index.h"

namespace strata {
namespace {

TEST_CASE("vocabularies belong to the index, and may not change", "[data][index]") {
  const ScratchFolder folder;
  JobSpec spec = JobOf(Format("csv"));
  spec.mutable_data()->mutable_columns()->set_label("y");
  for (const char* name : {"c", "d"}) {
    FieldConfig* field = spec.add_fields();
    field->set_name(name);
    field->set_kind("categorical");
    field->mutable_vocabulary()->set_file(folder.Write("values.gz", Gzip("a\nb\n")));
  }
  spec.add_fields()->set_name("n");
  spec.mutable_fields(2)->set_kind("numeric");
  const std::string train = folder.Write("train", "y,c,d,n\n1,a,b,3\n");
  const auto index = BuildIndex(spec, {train}, &text_files);
  INFO(index.status().ToString());
  REQUIRE(index.ok());
  CHECK(index->shape().fields() == 2);
  CHECK(index->shape().numeric() == 1);
  REQUIRE(index->vocabularies_size() == 1);
  CHECK(CheckFingerprints(*index, text_files).ok());
  folder.Write("values.gz", Gzip("b\na\n"));
  const std::string changed(CheckFingerprints(*index, text_files).message());
  CHECK(changed.find("vocabulary file " + folder.Path("values.gz") + " has changed since") == 0);
  folder.Write("values.gz", Gzip("a\nb\na\n"));
  CHECK(BuildIndex(spec, {train}, &text_files).status().message() ==
        "spec.fields[0].vocabulary.file: vocabulary file " + folder.Path("values.gz") +
            ":3: \"a\" is in line 1 too; remove one of the two lines");
}

// A job over a column whose values `words` has.
JobSpec JobWithWords(const std::string& words) {
  JobSpec spec = JobOf(Format("csv"));
  spec.mutable_data()->mutable_columns()->set_label("y");
  FieldConfig& field = *spec.add_fields();
  field.set_name("c");
  field.set_kind("categorical");
  field.mutable_vocabulary()->set_file(words);
  field.mutable_vocabulary()->set_out_of_vocabulary(1);
  return spec;
}

TEST_CASE("the index says what the vocabularies begin with", "[data][index]") {
  const ScratchFolder folder;
  const std::string words = folder.Write("words", "a\nb\nc\nd\n");
  const std::string train = folder.Write("train", "y,c\n1,a\n");
  const auto of = [&](const std::vector<uint64_t>& beginnings) {
    const auto index =
        BuildIndex(JobWithWords(words), {train}, &text_files, {.beginnings = beginnings});
    REQUIRE(index.ok());
    REQUIRE(index->vocabularies_size() == 1);
    return index->vocabularies(0);
  };
  const InputFile some = of({2, 3, 4, 5});
  REQUIRE(some.values_size() == 3);
  CHECK(some.values(0).count() == 4);
  CHECK(some.values(1).count() == 2);
  CHECK(some.values(2).count() == 3);
  const InputFile all = of({});
  REQUIRE(all.values_size() == 1);
  CHECK(all.values(0).fingerprint() == some.values(0).fingerprint());
  folder.Write("words", "a\nb\n");
  CHECK(of({}).values(0).fingerprint() == some.values(1).fingerprint());
  folder.Write("words", "a\nb\nc");
  CHECK(of({}).values(0).fingerprint() == some.values(2).fingerprint());
}

TEST_CASE("vocabularies for a checkpoint's rows begin with what it knows", "[data][index]") {
  const ScratchFolder folder;
  const std::string words = folder.Write("words", "a\nb\n");
  const JobSpec spec = JobWithWords(words);
  InputIndex then;
  REQUIRE(LoadVocabularies(spec, &text_files, &then).ok());
  VocabularyOptions options{.known = VocabulariesOf(then), .option = "--vocabulary"};
  const auto load = [&] { return LoadVocabularies(spec, &text_files, nullptr, options); };
  REQUIRE(load().ok());
  folder.Write("words", "a\nb\nc\n");
  const auto grown = load();
  REQUIRE(grown.ok());
  // What the model did not know is no value to it.
  CHECK(grown->at(words)->size() == 2);
  CHECK(grown->at(words)->LineOf("b") == 2);
  CHECK(grown->at(words)->LineOf("c") == 0);
  const std::string at = "spec.fields[0].vocabulary.file: vocabulary file " + words;
  const std::string or_another = ", or name another file by --vocabulary c=FILE";
  for (const char* other : {"b\na\n", "b\na\nc\n", "a\nx\n"}) {
    folder.Write("words", other);
    CHECK(load().status().message() ==
          at +
              " of field 'c' does not begin with the 2 values that the checkpoint knows, each in "
              "its line; put these values back" +
              or_another);
  }
  folder.Write("words", "a\n");
  CHECK(load().status().message() ==
        at +
            " of field 'c' has 1 value, and the checkpoint knows 2: line 2 is missing; put these "
            "values back" +
            or_another);
  std::filesystem::remove(words);
  CHECK(load().status().message() ==
        at + " does not exist; put the values of field 'c' there" + or_another);
  options = {};
  CHECK(load().status().message() ==
        at + " does not exist; put the values of field 'c' there, or name another file");
  CHECK(CheckFingerprints(then, text_files).message() ==
        "vocabulary file " + words + " does not exist; restore it, or submit a new job");
}

}  // namespace
}  // namespace strata
