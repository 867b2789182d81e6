// Vocabulary files that are not what a model was trained with, as a user meets them: a value's row
// goes by its line.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/bad_input/user.h"
#include "tests/tools/cluster/import/written_arrays.h"

namespace strata {
namespace {

constexpr char kItems[] = "i0\ni1\ni2\ni3\ni4\n";
// The same values, two of them in each other's line.
constexpr char kTurned[] = "i0\ni3\ni2\ni1\ni4\n";
constexpr char kOneMore[] = "i0\ni1\ni2\ni3\ni4\nnever\n";
constexpr char kGrown[] = "i0\ni1\ni2\ni3\ni4\ni9\nnever\n";

// A job over items, of which i5 to i9 are out of the vocabulary; its checkpoint of step 4 is in c.
// `more`: of field user.
void Train(const User& user, const std::string& more = "") {
  std::string lines = "clicked,user,item\n";
  for (int i = 0; i < 32; ++i) {
    lines += std::to_string(i % 3 % 2) + ",u" + std::to_string(i % 4) + ",i" +
             std::to_string(i * 7 % 10) + "\n";
  }
  user.Write("train.csv", lines);
  user.Write("items.txt", kItems);
  user.Write("job.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
             "  data: {format: csv, train: [train.csv], columns: {label: clicked}}\n"
             "  fields:\n    - {name: user, kind: categorical" +
                 more +
                 "}\n"
                 "    - {name: item, kind: categorical, vocabulary: {file: items.txt, "
                 "outOfVocabulary: 3}}\n"
                 "  model: {type: fm, embeddingDim: 4, initScale: 0.1}\n"
                 "  training: {mode: bsp, lanes: 2, batchSize: 4, epochs: 1}\n"
                 "  checkpoint: {directory: c, keep: 5}\n");
  const ProgramResult r = user.Strata("train -f job.yaml");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
}

const std::string kStep4 = "c/step-000000000004";
const std::string kResume = "train -f job.yaml --resume --set spec.training.epochs=2";
const std::string kFrom =
    "train -f job.yaml --set spec.checkpoint.directory=d --set spec.model.initFrom=" + kStep4;
const std::string kPredict = "predict --checkpoint " + kStep4 + " train.csv";

std::string ModelHash(const User& user, const std::string& checkpoints) {
  const ProgramResult r = user.Strata("checkpoint verify " + checkpoints);
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return r.out.substr(r.out.find("model hash"), 43);
}

TEST_CASE("a vocabulary of other lines is refused by field, file and remedy", "[bad_input]") {
  User user;
  Train(user);
  const std::string file = "vocabulary file " + user.Path("items.txt");
  const std::string does_not =
      " does not begin with the 5 values that the checkpoint knows, each in its line";
  for (const char* other : {kTurned, "i0\ni1\ni2\ni3\nx\n", "new\ni0\ni1\ni2\ni3\ni4\n"}) {
    user.Write("items.txt", other);
    CheckSays(user.Strata(kResume), 1,
              {"field item: " + file + does_not +
                   " (put the checkpoint's values back, new ones behind them)",
               "start anew with --overwrite"});
    CheckSays(user.Strata(kFrom), 1,
              {"spec.model.initFrom " + user.Path(kStep4) + " does not fit the job",
               "field item: " + file + does_not,
               "leave its table behind with spec.model.initFrom.rename: {features: \"\"}"});
    CheckSays(user.Strata(kPredict), 2,
              {"spec.fields[1].vocabulary.file: " + file + " of field 'item'" + does_not +
               "; put these values back, or name another file by --vocabulary item=FILE"});
    CheckSays(user.Strata("get-row --checkpoint c --field item --value i1"), 2,
              {file + " of field 'item'" + does_not});
  }
  user.Write("items.txt", "i0\ni1\ni2\ni3\n");
  CheckSays(user.Strata(kResume), 1,
            {"field item: " + file +
             " has 4 values, and the checkpoint knows 5: line 5 is "
             "missing"});
  // On a cluster too, where worker and scheduler are two processes.
  user.Write("items.txt", kTurned);
  REQUIRE(user.Up().exit_code == 0);
  CheckSays(user.Strata("submit --wait --resume -f job.yaml --set spec.training.epochs=2"), 1,
            {"field item: " + file + does_not});
  // Nothing became of the checkpoint meanwhile.
  user.Write("items.txt", kItems);
  // Rows of a job that runs are those of the lines that it began with.
  REQUIRE(
      user.Strata("submit -f job.yaml --set metadata.name=live --set spec.checkpoint.directory=l "
                  "--set spec.training.epochs=1000000")
          .exit_code == 0);
  const std::string live = "get-row --job live --field item --value i1";
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (user.Strata(live).exit_code != 0) REQUIRE(absl::Now() < end);
  user.Write("items.txt", kTurned);
  CheckSays(user.Strata(live), 2,
            {file + " of field 'item' does not begin with the 5 values that the job knows"});
  user.Write("items.txt", kItems);
  REQUIRE(user.Strata("cancel live").exit_code == 0);
  CHECK(user.Strata(kResume).exit_code == 0);
}

// Keys are lines of the table's vocabulary, whatever column they are read from: an item's row went
// on as that of a user.
TEST_CASE("another vocabulary in the table of a field that is dropped is refused", "[bad_input]") {
  User user;
  Train(user);
  const auto job = [&](const std::string& field) {
    user.Write(field + ".yaml",
               "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: " + field +
                   "}\nspec:\n"
                   "  data: {format: csv, train: [train.csv], columns: {label: clicked}}\n"
                   "  tables: [{name: things}]\n"
                   "  fields:\n    - {name: " +
                   field + ", kind: categorical, table: things, vocabulary: {file: " + field +
                   "s.txt}}\n"
                   "  model: {type: lr}\n"
                   "  training: {mode: bsp, lanes: 2, batchSize: 4, epochs: 1}\n"
                   "  checkpoint: {directory: of-" +
                   field + "}\n");
  };
  job("item");
  job("user");
  user.Write("users.txt", "u0\nu1\nu2\nu3\nu4\n");
  REQUIRE(user.Strata("train -f item.yaml").exit_code == 0);
  const std::string from =
      "train -f user.yaml --set spec.model.initFrom.checkpoint=of-item/step-000000000004 "
      "--set spec.model.initFrom.newTensors=allow --set spec.model.initFrom.droppedTensors=allow";
  CheckSays(user.Strata(from), 1,
            {"field user: its values would have, line by line, the rows of the checkpoint's field "
             "item, and vocabulary file " +
                 user.Path("users.txt") + " does not begin with the 5 values",
             "; give it a hashSeed of its own or another table"});
  CHECK(user.Strata(from + " --set spec.model.hashSeed=9").exit_code == 0);
}

TEST_CASE("a vocabulary that goes on behind what was known means the same", "[bad_input]") {
  User user;
  Train(user);
  const std::string scores = user.Strata(kPredict).out;
  const std::string row = user.Strata("get-row --checkpoint c --field item --value i9").out;
  REQUIRE(!scores.empty());
  REQUIRE(!row.empty());
  // A value that the model did not know is out of its vocabulary, as it was when it learnt.
  user.Write("items.txt", kGrown);
  CHECK(user.Strata(kPredict).out == scores);
  CHECK(user.Strata("get-row --checkpoint c --field item --value i9").out == row);

  // The same job with and without a value that no line has.
  std::filesystem::copy(user.Path("c"), user.Path("kept"),
                        std::filesystem::copy_options::recursive);
  user.Write("items.txt", kItems);
  REQUIRE(user.Strata(kResume).exit_code == 0);
  const std::string hash = ModelHash(user, "c");
  std::filesystem::remove_all(user.Path("c"));
  std::filesystem::rename(user.Path("kept"), user.Path("c"));
  user.Write("items.txt", kOneMore);
  const ProgramResult resumed = user.Strata(kResume);
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(ModelHash(user, "c") == hash);
  CHECK((resumed.out + resumed.err).find("field item (a vocabulary of 5 values, 6 now)") !=
        std::string::npos);
  // What the checkpoint knows has grown with it.
  const std::string grown =
      "  values 6  outOfVocabulary 3  vocabularyFile " + user.Path("items.txt") + "\n";
  const ProgramResult shown = user.Strata("checkpoint show c");
  CHECK(shown.out.find(grown) != std::string::npos);
  CheckSays(user.Strata("checkpoint diff " + kStep4 + " c"), 0,
            {"field item: vocabulary was ", " (5 values), is ", " (6 values)"});
  CheckSays(user.Strata("validate -f job.yaml"), 0, {grown});
  user.Write("items.txt", kItems);
  CheckSays(user.Strata("train -f job.yaml --resume --set spec.training.epochs=3"), 1,
            {"has 5 values, and the checkpoint knows 6: line 6 is missing"});
}

TEST_CASE("a vocabulary that is gone can be named elsewhere", "[bad_input]") {
  User user;
  Train(user);
  const std::string scores = user.Strata(kPredict).out;
  std::filesystem::rename(user.Path("items.txt"), user.Path("moved.txt"));
  CheckSays(user.Strata(kPredict), 2,
            {"spec.fields[1].vocabulary.file: vocabulary file " + user.Path("items.txt") +
             " does not exist; put the values of field 'item' there, or name another file by "
             "--vocabulary item=FILE"});
  const ProgramResult r = user.Strata(kPredict + " --vocabulary item=moved.txt");
  CHECK(r.exit_code == 0);
  CHECK(r.out == scores);
  CheckSays(user.Strata(kPredict + " --vocabulary item"), 2,
            {"--vocabulary item names no file; give FIELD=FILE"});
  CheckSays(user.Strata(kPredict + " --vocabulary user=moved.txt"), 2,
            {"the job has no field 'user' with a vocabulary", "strata checkpoint show"});
  CheckSays(user.Strata("train -f job.yaml --overwrite"), 1,
            {"spec.fields[1].vocabulary.file: vocabulary file ",
             "does not exist; put the values of field 'item' there, or name another file"});
}

TEST_CASE("two fields of other values cannot be given one vocabulary", "[bad_input]") {
  User user;
  user.Write("users.txt", "u0\nu1\nu2\nu3\n");
  Train(user, ", vocabulary: {file: users.txt}");
  for (const std::string& other :
       {"user=" + user.Path("items.txt"), "item=" + user.Path("users.txt")}) {
    CheckOneLine(user.Strata(kPredict + " --vocabulary " + other), 2,
                 {other.substr(5) + " cannot be the vocabulary of field 'user' and of field 'item'",
                  "give each its own file"});
  }
  CHECK(user.Strata(kPredict).exit_code == 0);
}

TEST_CASE("imported rows go by the lines that their values had", "[bad_input]") {
  User user;
  Train(user);
  const std::string keys = GENERATE("--field item --keys keys.txt", "--raw-keys --keys raw.txt");
  CAPTURE(keys);
  user.Write("keys.txt", "i1\ni3\n");
  user.Write("raw.txt", "1\n3\n");
  user.Write("rows.npy", testing::Npy("<f4", "(2, 4)", testing::BytesOf(std::vector<float>(8))));
  const ProgramResult r = user.Strata("import -f job.yaml --rows rows.npy -o pretrained " + keys);
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const std::string from =
      "train -f job.yaml --set spec.checkpoint.directory=d --set spec.model.initFrom=pretrained "
      "--set spec.model.initFrom.newTensors=allow";
  user.Write("items.txt", kTurned);
  CheckSays(user.Strata(from), 1,
            {"field item: vocabulary file " + user.Path("items.txt") +
             " does not begin with the 5 values"});
  user.Write("items.txt", kGrown);
  CHECK(user.Strata(from).exit_code == 0);
}

// The row that they share is of all values that nobody knows.
TEST_CASE("rows of values out of a vocabulary are not imported", "[bad_input]") {
  User user;
  Train(user);
  user.Write("rows.npy", testing::Npy("<f4", "(4, 4)", testing::BytesOf(std::vector<float>(16))));
  const std::string import =
      "import -f job.yaml --field item --rows rows.npy -o pretrained --keys ";
  const std::string vocabulary =
      " is not in the vocabulary of field 'item' (" + user.Path("items.txt") + ")";
  const std::string remedy =
      "; all that are not share rows, of which none can be imported: leave their rows out, or add "
      "the values to the vocabulary, behind those that it has";
  user.Write("keys.txt", "i1\ni3\ni9\ni0\n");
  CheckOneLine(user.Strata(import + "keys.txt"), 2, {"keys.txt:3: 'i9'" + vocabulary + remedy});
  user.Write("keys.txt", "i1\nx\ni9\ni0\n");
  CheckOneLine(user.Strata(import + "keys.txt"), 2,
               {"keys.txt:2: 'x'" + vocabulary + ", nor is 1 more" + remedy});
  user.Write("keys.npy", testing::Npy("<i8", "(4,)", testing::BytesOf<int64_t>({7, 8, 9, 10})));
  CheckOneLine(user.Strata(import + "keys.npy"), 2,
               {"keys.npy, row 0: '7'" + vocabulary + ", nor are 3 more" + remedy});
  CHECK_FALSE(std::filesystem::exists(user.Path("pretrained")));
  // Behind those that the job's checkpoint knows they are values like others.
  user.Write("items.txt", kItems + std::string("i9\nx\n"));
  CHECK(user.Strata(import + "keys.npy").exit_code == 2);
  CHECK(user.Strata(import + "keys.txt").exit_code == 0);
  CheckSays(user.Strata("get-row --checkpoint pretrained --field item --value x"), 0,
            {"embedding: 0 0 0 0"});
  const ProgramResult other =
      user.Strata("get-row --checkpoint pretrained --field item --value nobody");
  CheckSays(other, 0,
            {"\"nobody\" is out of the vocabulary, and hashed: other values that are",
             "no row: reads as its initial value"});
}

TEST_CASE("two vocabularies over one column are refused", "[bad_input]") {
  User user;
  Train(user);
  user.Write("more.txt", kTurned);
  std::string job = user.Read("job.yaml");
  const std::string item = "    - {name: item,";
  job.insert(
      job.find(item),
      "    - {name: brand, column: item, kind: categorical, vocabulary: {file: more.txt}}\n");
  user.Write("job.yaml", job);
  CheckSays(user.Strata("train -f job.yaml --overwrite"), 2,
            {"spec.fields[2].vocabulary.file: field 'item' and field 'brand' share the rows of "
             "column item and have other vocabularies; give one of them a hashSeed of its own"});
}

}  // namespace
}  // namespace strata
