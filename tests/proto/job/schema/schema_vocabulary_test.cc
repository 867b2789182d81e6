#include "proto/job/schema/schema_vocabulary.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_text.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// Two fields whose rows one table has, by the lines of one vocabulary. Fingerprints are names here.
Schema Saved(uint64_t values, const std::string& fingerprint) {
  Schema schema;
  schema.set_model("lr");
  SchemaTable& table = *schema.add_tables();
  table.set_name("items");
  table.add_segments()->set_name("weight");
  for (const char* name : {"item", "clicks"}) {
    SchemaField& field = *schema.add_fields();
    field.set_name(name);
    field.set_kind("categorical");
    field.set_table("items");
    field.set_keys("table");
    field.set_out_of_vocabulary(3);
    field.set_vocabulary(fingerprint);
    if (!fingerprint.empty()) field.set_vocabulary_values(values);
  }
  return schema;
}

std::string ResumeProblem(const Schema& saved, const Schema& now,
                          const VocabularyContents& files = {}) {
  const absl::Status s = CheckResume(MapSchemas(saved, now, {}, files));
  return s.ok() ? "OK" : std::string(s.message());
}

std::string InitProblem(const Schema& saved, const Schema& now, const InitFromSpec& init,
                        const VocabularyContents& files = {}) {
  const absl::Status s =
      CheckInitFrom(MapSchemas(saved, now, RenamesOf(init), files), saved, now, init);
  return s.ok() ? "OK" : std::string(s.message());
}

TEST_CASE("a vocabulary whose lines changed places is another one", "[schema]") {
  const Schema saved = Saved(5, "abcde"), now = Saved(5, "badce");
  const VocabularyContents files = {{"/items.txt", {5, "badce", {}}}};
  CHECK(ResumeProblem(saved, saved, {{"/items.txt", {5, "abcde", {}}}}) == "OK");
  const std::string other =
      ": vocabulary file /items.txt does not begin with the 5 values that the checkpoint knows, "
      "each in its line (put the checkpoint's values back, new ones behind them)";
  CHECK(ResumeProblem(saved, now, files) == "field item" + other + "\nfield clicks" + other);
  InitFromSpec init;
  const std::string remedy =
      "; set what the checkpoint has, or leave its table behind with spec.model.initFrom.rename: "
      "{items: \"\"}";
  CHECK(InitProblem(saved, now, init, files) ==
        "field item" + other + remedy + "\nfield clicks" + other + remedy);
  // What begins anew may have other keys.
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  (*init.mutable_rename())["items"] = "";
  CHECK(InitProblem(saved, now, init, files) == "OK");
}

TEST_CASE("a vocabulary may go on behind the values that a checkpoint knows", "[schema]") {
  const Schema saved = Saved(3, "abc"), now = Saved(5, "abcde");
  const auto problem = [&](const std::map<uint64_t, std::string>& beginnings) {
    return ResumeProblem(saved, now, {{"/items.txt", {5, "abcde", beginnings}}});
  };
  CHECK(problem({{3, "abc"}}) == "OK");
  CHECK(MappingText(MapSchemas(saved, now, {}, {{"/items.txt", {5, "abcde", {{3, "abc"}}}}})) ==
        "loaded: table items, field item (a vocabulary of 3 values, 5 now), field clicks (a "
        "vocabulary of 3 values, 5 now)");
  CHECK(MappingText(MapSchemas(now, now)) == "loaded: table items, field item, field clicks");
  CHECK(problem({{2, "ab"}, {3, "abc"}, {4, "abcd"}}) == "OK");
  CHECK(problem({{3, "acb"}}).find("does not begin with the 3 values that the checkpoint knows") !=
        std::string::npos);
  CHECK(problem({{2, "abc"}})
            .find("has 5 values, and was not compared with the 3 of a checkpoint "
                  "that came since") != std::string::npos);
  // It may not lose some.
  CHECK(ResumeProblem(now, saved, {{"/items.txt", {3, "abc", {}}}})
            .find("/items.txt has 3 values, and the checkpoint knows 5: line 4 is missing") !=
        std::string::npos);
}

TEST_CASE("schemas that do not say what a vocabulary has are compared without", "[schema]") {
  CHECK(ResumeProblem(Saved(0, ""), Saved(5, "abcde"), {{"/f", {5, "abcde", {}}}}) == "OK");
  CHECK(ResumeProblem(Saved(5, "abcde"), Saved(0, "")) == "OK");
  // Without files, as two checkpoints.
  CHECK(ResumeProblem(Saved(1, "a"), Saved(2, "ab"))
            .find("field item: vocabulary was a (1 value), is ab (2 values); whether it only grew "
                  "is not known without its file\n") == 0);
}

TEST_CASE("a field by another name has the rows of the vocabulary that it had", "[schema]") {
  const Schema saved = Saved(2, "ab");
  Schema now = Saved(2, "ba");
  now.mutable_fields()->DeleteSubrange(1, 1);
  now.mutable_fields(0)->set_name("thing");
  InitFromSpec init;
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  CHECK(InitProblem(saved, now, init, {{"/f", {2, "ba", {}}}})
            .find("field thing: it would have the rows of the checkpoint's field item, and "
                  "vocabulary file /f does not begin with the 2 values") == 0);
  now.mutable_fields(0)->set_vocabulary("ab");
  CHECK(InitProblem(saved, now, init, {{"/f", {2, "ab", {}}}}) == "OK");
}

// A field that reads another column by lines of a vocabulary, in a table that is there.
Schema WithField(Schema schema, const std::string& name, const std::string& fingerprint,
                 uint64_t values) {
  schema.clear_fields();
  SchemaField& field = *schema.add_fields();
  field = Saved(values, fingerprint).fields(0);
  field.set_name(name);
  field.set_column(name);
  return schema;
}

InitFromSpec AllowAll() {
  InitFromSpec init;
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  return init;
}

// Line 7 was an item, and would have gone on as an advertiser.
TEST_CASE("lines of another vocabulary are no rows of a field's own", "[schema]") {
  const Schema saved = WithField(Saved(2, "ab"), "item", "ab", 2);
  const Schema now = WithField(Saved(2, "xy"), "ad", "xy", 2);
  const VocabularyContents files = {{"/ads.txt", {2, "xy", {}}}};
  CHECK(InitProblem(saved, now, AllowAll(), files) ==
        "field ad: its values would have, line by line, the rows of the checkpoint's field item, "
        "and vocabulary file /ads.txt does not begin with the 2 values that the checkpoint knows, "
        "each in its line (put the checkpoint's values back, new ones behind them); give it a "
        "hashSeed of its own or another table, or leave that table behind with "
        "spec.model.initFrom.rename: {items: \"\"}");
  // Fewer or more values are others, too.
  CHECK(InitProblem(saved, WithField(saved, "ad", "x", 1), AllowAll(), {{"/f", {1, "x", {}}}}) !=
        "OK");
  const VocabularyContents more = {{"/f", {3, "xyz", {{2, "xy"}}}}};
  CHECK(InitProblem(saved, WithField(saved, "ad", "xyz", 3), AllowAll(), more) != "OK");

  // What is said to be done helps.
  Schema seed = now, table = now;
  seed.mutable_fields(0)->set_hash_seed(9);
  CHECK(InitProblem(saved, seed, AllowAll(), files) == "OK");
  table.mutable_fields(0)->set_table("ads");
  *table.add_tables() = table.tables(0);
  table.mutable_tables(1)->set_name("ads");
  CHECK(InitProblem(saved, table, AllowAll(), files) == "OK");
  InitFromSpec anew = AllowAll();
  (*anew.mutable_rename())["items"] = "";
  CHECK(InitProblem(saved, now, anew, files) == "OK");
}

TEST_CASE("values of one vocabulary have their rows whatever column they are read from",
          "[schema]") {
  const Schema saved = WithField(Saved(2, "ab"), "item", "ab", 2);
  const Schema now = WithField(saved, "ad", "ab", 2);
  CHECK(InitProblem(saved, now, AllowAll(), {{"/f", {2, "ab", {}}}}) == "OK");
  const Schema longer = WithField(saved, "ad", "abc", 3);
  CHECK(InitProblem(saved, longer, AllowAll(), {{"/f", {3, "abc", {{2, "ab"}}}}}) == "OK");
  // Before the data are read the job's values are not known.
  Schema unknown = WithField(saved, "ad", "", 0);
  CHECK(InitProblem(saved, unknown, AllowAll()) == "OK");
  // Buckets of other values are others where there are more of them; that is known at once.
  unknown.mutable_fields(0)->set_out_of_vocabulary(4);
  CHECK(InitProblem(saved, unknown, AllowAll())
            .find("field ad: its values would have, line by line, the rows of the checkpoint's "
                  "field item, and vocabulary.outOfVocabulary was 3, is 4; give it a hashSeed") ==
        0);
  // A checkpoint that does not say what its lines are may have meant anything.
  const Schema earlier = WithField(saved, "item", "", 0);
  CHECK(InitProblem(earlier, now, AllowAll(), {{"/f", {2, "ab", {}}}})
            .find("field ad: its values would have, line by line, the rows of the checkpoint's "
                  "field item, and the checkpoint does not say which values those lines are; ") ==
        0);
}

TEST_CASE("keys that hash a column are no lines of another one", "[schema]") {
  Schema saved = WithField(Saved(2, "ab"), "item", "ab", 2);
  Schema now = WithField(saved, "ad", "xy", 2);
  for (Schema* schema : {&saved, &now}) schema->mutable_fields(0)->set_keys("column");
  CHECK(InitProblem(saved, now, AllowAll(), {{"/f", {2, "xy", {}}}}) == "OK");
  // Nor are values that are hashed.
  saved.mutable_fields(0)->set_keys("table");
  now.mutable_fields(0)->set_keys("table");
  now.mutable_fields(0)->set_out_of_vocabulary(0);
  now.mutable_fields(0)->clear_vocabulary();
  CHECK(InitProblem(saved, now, AllowAll()) == "OK");
}

// The field's own table is left behind, and the one that it moves to has rows of other values.
TEST_CASE("lines of a field that moves to another table are not those that are there", "[schema]") {
  Schema saved = WithField(Saved(2, "ab"), "item", "ab", 2);
  *saved.add_tables() = saved.tables(0);
  saved.mutable_tables(1)->set_name("ads");
  *saved.add_fields() = WithField(saved, "ad", "xy", 2).fields(0);
  saved.mutable_fields(1)->set_table("ads");
  Schema now = saved;
  now.mutable_fields()->RemoveLast();
  now.mutable_fields(0)->set_table("ads");
  InitFromSpec init = AllowAll();
  (*init.mutable_rename())["items"] = "";
  CHECK(InitProblem(saved, now, init, {{"/f", {2, "ab", {}}}})
            .find("field item: its values would have, line by line, the rows of the checkpoint's "
                  "field ad, and vocabulary file /f does not begin with ") == 0);
}

TEST_CASE("a field beside one that stays has the lines of that", "[schema]") {
  // Of a checkpoint that does not say what they are: they are compared without.
  const Schema saved = WithField(Saved(2, "ab"), "item", "", 0);
  Schema now = WithField(saved, "item", "ab", 2);
  *now.add_fields() = WithField(saved, "clicks", "ab", 2).fields(0);
  CHECK(InitProblem(saved, now, AllowAll(), {{"/f", {2, "ab", {}}}}) == "OK");
}

TEST_CASE("an index and a job say what the fields know", "[schema]") {
  InputIndex index;
  InputFile& file = *index.add_vocabularies();
  file.set_path("/items.txt");
  for (const auto& [count, fingerprint] :
       std::vector<std::pair<uint64_t, std::string>>{{5, "abcde"}, {2, "ab"}, {3, "abc"}}) {
    file.add_values()->set_count(count);
    file.mutable_values()->rbegin()->set_fingerprint(fingerprint);
  }
  index.add_vocabularies()->set_path("/of an earlier version");
  const VocabularyContents contents = VocabulariesOf(index);
  REQUIRE(contents.size() == 1);
  CHECK(contents.at("/items.txt").values == 5);
  CHECK(contents.at("/items.txt").fingerprint == "abcde");
  CHECK(contents.at("/items.txt").beginnings ==
        std::map<uint64_t, std::string>{{2, "ab"}, {3, "abc"}});

  JobSpec spec;
  for (const char* name : {"item", "user", "clicks"}) spec.add_fields()->set_name(name);
  spec.mutable_fields(0)->mutable_vocabulary()->set_file("/items.txt");
  spec.mutable_fields(2)->mutable_vocabulary()->set_file("/elsewhere.txt");
  Schema schema = Saved(0, "");
  DescribeVocabularies(spec, contents, &schema);
  CHECK(schema.fields(0).vocabulary() == "abcde");
  CHECK(schema.fields(0).vocabulary_values() == 5);
  CHECK(schema.fields(1).vocabulary().empty());
  CHECK(SchemaText(schema).find("  vocabulary abcde  values 5  outOfVocabulary 3\n") !=
        std::string::npos);
  const VocabularyContents known = KnownVocabularies(spec, schema);
  REQUIRE(known.size() == 1);
  CHECK(known.at("/items.txt").values == 5);
  CHECK(known.at("/items.txt").fingerprint == "abcde");

  const Schema three = Saved(3, "abc"), none = Saved(0, "");
  CHECK(VocabularyCounts({&schema, &three, &none, &schema}) == std::vector<uint64_t>{3, 5});
}

}  // namespace
}  // namespace strata
