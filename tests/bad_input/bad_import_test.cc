// `strata import` as a user types it, rightly and wrongly.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/bad_input/user.h"
#include "tests/tools/cluster/import/written_arrays.h"

namespace strata {
namespace {

using testing::BytesOf;
using testing::Npy;
using testing::NpyOf;
using testing::Safetensors;
using testing::Tensor;

constexpr char kImport[] = "import -f job.yaml -o pretrained ";
constexpr char kItem[] = "--table item --field item --keys ids.txt --rows items.npy ";

// Two tables, one of them `item`; items i0 to i3 have rows, of which the data have i0 and i1.
void WriteJobOfItems(const User& user, const std::string& item = "{name: item}") {
  user.Write("job.yaml",
             absl::StrCat("apiVersion: strata/v1\n"
                          "kind: TrainingJob\n"
                          "metadata: {name: items}\n"
                          "spec:\n"
                          "  data: {format: csv, train: [train.csv], columns: {label: clicked}}\n"
                          "  model: {type: deepfm, embeddingDim: 2, hidden: [4]}\n"
                          "  tables: [",
                          item,
                          ", {name: user}]\n"
                          "  fields:\n"
                          "    - {name: user, column: user_id, kind: categorical, table: user}\n"
                          "    - {name: item, column: item_id, kind: categorical, table: item}\n"
                          "  training: {lanes: 2, batchSize: 4}\n"
                          "  checkpoint: {directory: ck}\n"));
  std::string data = "clicked,user_id,item_id\n";
  for (int i = 0; i < 32; ++i) {
    data +=
        std::to_string(i % 2) + ",u" + std::to_string(i % 5) + ",i" + std::to_string(i % 2) + "\n";
  }
  user.Write("train.csv", data);
  user.Write("ids.txt", "i0\ni1\ni2\ni3\n");
  user.Write("items.npy", Npy("<f4", "(4, 2)", BytesOf<float>({0, 1, 2, 3, 4.5, -5, 6, 7})));
  user.Write("numbers.npy", Npy("<i8", "(2,)", BytesOf<int64_t>({17, -4})));
  user.Write("users.safetensors", Safetensors("{" + Tensor("user", "F32", "[2, 2]", 0, 16) + ", " +
                                                  Tensor("other", "F32", "[1, 2]", 16, 24) + "}",
                                              BytesOf<float>({8, 9, 10, 11, 12, 13})));
}

TEST_CASE("imported rows are shown, checked and started from", "[bad_input][import]") {
  User user;
  WriteJobOfItems(user);
  CheckSays(user.Strata(kImport + std::string(kItem) +
                        "--table user --field user --keys numbers.npy --rows users.safetensors "
                        "--tensor user"),
            0,
            {"pretrained", "table item: 4 rows", "table user: 2 rows",
             "spec.model.initFrom: {checkpoint: pretrained, newTensors: allow}"});
  CheckSays(user.Strata("checkpoint verify pretrained"), 0, {"is whole", "6 rows"});
  CheckSays(user.Strata("checkpoint show pretrained"), 0,
            {"model import", "table item", "table user", "field item", "field user"});
  CheckSays(user.Strata("predict --checkpoint pretrained train.csv"), 2,
            {"pretrained has rows that `strata import` wrote, and no model"});
  const std::string row = "get-row --checkpoint pretrained --field ";
  CheckSays(user.Strata(row + "item --value i2"), 0, {"embedding: 4.5 -5", "0 updates"});
  CheckSays(user.Strata(row + "user --value 17"), 0, {"embedding: 8 9"});
  CheckSays(user.Strata(row + "user --value -4"), 0, {"embedding: 10 11"});

  const std::string train = "train -f job.yaml --set spec.replicas.servers=2 ";
  CheckSays(user.Strata(train + "--set spec.model.initFrom.checkpoint=pretrained"), 2,
            {"spec.model.initFrom.newTensors: allow", "label"});
  CheckSays(
      user.Strata(train + "--set "
                          "'spec.model.initFrom={checkpoint: pretrained, newTensors: allow}'"),
      0, {"StartsFrom", "loaded: table item, table user", "new: spec.model.type deepfm"});
  CheckSays(user.Strata("get-row --checkpoint ck --field item --value i2"), 0,
            {"embedding: 4.5 -5", "0 updates"});
  CheckSays(user.Strata("get-row --checkpoint ck --field item --value i1"), 0, {"4 updates"});
  CheckSays(user.Strata(kImport + std::string(kItem)), 2,
            {"pretrained has something in it; name an empty or new folder"});
}

// Each column has rows of its own there, whether or not spec.tables says what the table is like.
TEST_CASE("rows of columns are found in the table that they have", "[bad_input][import]") {
  User user;
  WriteJobOfItems(user);
  const std::string job =
      "apiVersion: strata/v1\n"
      "kind: TrainingJob\n"
      "metadata: {name: items}\n"
      "spec:\n"
      "  data: {format: csv, train: [train.csv], columns: {label: clicked, categorical: [user_id, "
      "item_id]}}\n"
      "  model: {type: deepfm, embeddingDim: 2, hidden: [4]}\n"
      "  training: {lanes: 2, batchSize: 4}\n"
      "  checkpoint: {directory: ck}\n";
  user.Write("job.yaml", job + "  tables: [{name: features}]\n");
  user.Write("plain.yaml", job);
  CheckSays(user.Strata(kImport + std::string("--field item_id --keys ids.txt --rows items.npy")),
            0, {"table features: 4 rows"});
  CheckSays(user.Strata("train -f job.yaml --set "
                        "'spec.model.initFrom={checkpoint: pretrained, newTensors: allow}'"),
            0, {"loaded: table features"});
  const std::string row = "get-row --checkpoint ck --field ";
  CheckSays(user.Strata(row + "item_id --value i2"), 0, {"embedding: 4.5 -5", "0 updates"});
  CheckSays(user.Strata(row + "item_id --value i1"), 0, {"4 updates"});
  // As fields, columns would share rows beside that table.
  CheckOneLine(user.Strata("validate -f job.yaml --form fields --set "
                           "'spec.tables=[{name: features, optimizer: {type: adam}}]'"),
               2, {"spec.tables[0].optimizer: ", "remove spec.tables"});
  const ProgramResult form = user.Strata("validate -f job.yaml --form fields");
  INFO(form.err);
  REQUIRE(form.exit_code == 0);
  user.Write("form.json", form.out);
  const auto hash_of = [&](const std::string& file) {
    const ProgramResult r =
        user.Strata("train -f " + file + " --set spec.checkpoint.directory=" + file + ".ck");
    INFO(r.out << r.err);
    REQUIRE(r.exit_code == 0);
    const size_t at = (r.out + r.err).find("model hash ");
    REQUIRE(at != std::string::npos);
    return (r.out + r.err).substr(at, 27);
  };
  const std::string hash = hash_of("job.yaml");
  CHECK(hash_of("plain.yaml") == hash);
  CHECK(hash_of("form.json") == hash);
}

TEST_CASE("keys of a field of several values are one value each", "[bad_input][import]") {
  User user;
  user.Write("job.yaml",
             "apiVersion: strata/v1\n"
             "kind: TrainingJob\n"
             "metadata: {name: tags}\n"
             "spec:\n"
             "  data: {format: csv, train: [train.csv], columns: {label: clicked}}\n"
             "  model: {type: fm, embeddingDim: 2}\n"
             "  fields: [{name: tags, kind: multiValued, weightSeparator: ':'}]\n");
  user.Write("rows.npy", Npy("<f4", "(2, 2)", BytesOf<float>({1, 2, 3, 4})));
  const std::string import = kImport + std::string("--field tags --keys keys --rows rows.npy");
  for (const char* bad : {"red|", "|red", "red|blue"}) {
    user.Write("keys", absl::StrCat("green\n", bad, "\n"));
    CheckOneLine(user.Strata(import), 2,
                 {absl::StrCat("keys:2: value '", bad, "' of tags has the field's separator '|'"),
                  "give one value"});
    CHECK_FALSE(std::filesystem::exists(user.Path("pretrained")));
  }
  user.Write("keys", "green\nred:0.5\n");
  CheckOneLine(user.Strata(import), 2, {"keys:2: value 'red:0.5' of tags has a weight behind ':'"});
  user.Write("keys", "green\nred\n");
  CheckSays(user.Strata(import), 0, {"table features: 2 rows"});
  CheckSays(user.Strata("get-row --checkpoint pretrained --field tags --value 'red|'"), 0,
            {"\"red\" is hashed", "embedding: 3 4"});
}

TEST_CASE("what does not go together in an import is told", "[bad_input][import]") {
  User user;
  WriteJobOfItems(user);
  const auto says = [&](const std::string& arguments, const std::string& what) {
    INFO(arguments);
    CheckSays(user.Strata(kImport + arguments), 2, {what});
    CHECK_FALSE(std::filesystem::exists(user.Path("pretrained")));
  };
  says("--table item --keys ids.txt --rows items.npy", "give --field, whose values the keys are");
  says(absl::StrCat(kItem, "--raw-keys"), "--raw-keys");
  says(absl::StrCat(kItem, "--rows items.npy"), "1 --keys and 2 --rows; give one --keys for each");
  says("--field item --keys ids.txt --rows items.npy", "name the table of the rows by --table");
  says(absl::StrCat(kItem, "--table user"), "2 --table and 1 --rows");
  says(absl::StrCat(kItem, "--field user"), "2 --field and 1 --rows");
  says(absl::StrCat(kItem, "--tensor user"), "leave out --tensor user");
  says(absl::StrCat(kItem, "--tensor a --tensor b"), "--tensor b is one more than there are");
  says("--table place --field item --keys ids.txt --rows items.npy",
       "no table 'place'; the model has item and dense and user");
  says("--table user --field item --keys ids.txt --rows items.npy",
       "field item is of table item, not of user");
  says("--table item --field colour --keys ids.txt --rows items.npy",
       "--field colour is no field of the job's data; there are 0 to 1: user, item");
  says("--table item --raw-keys --keys ids.txt --rows items.npy",
       "ids.txt:1: key 'i0' is not a whole number from 0 to");
  says("--table item --raw-keys --keys numbers.npy --rows users.safetensors --tensor user",
       "numbers.npy, row 1: key '-4' is not a whole number");
  says("--table user --field user --keys numbers.npy --rows users.safetensors",
       "users.safetensors: name one of its tensors by --tensor; it has user, other");
  says("--table user --field user --keys numbers.npy --rows users.safetensors --tensor it",
       "users.safetensors: no tensor 'it'; it has user, other");
  says("--table item --field item --keys none.txt --rows items.npy", "none.txt");
  says("--table item --field item --keys ids.txt --rows job.yaml", "neither an npy nor a whole");
  WriteJobOfItems(user, "{name: item, lifeCycle: {removal: {score: {below: 0.8}}}}");
  says(kItem,
       "table item: lifeCycle.removal.score: imported rows begin at score 0, and would be "
       "removed before they have been seen; leave that rule out");
  WriteJobOfItems(user);
  // Files that are broken, and what would be several lines or move a terminal's cursor.
  const std::string data = BytesOf<float>({0, 1, 2, 3, 4, 5, 6, 7});
  const std::string whole = Npy("<f4", "(4, 2)", data);
  const std::string a = Tensor("a", "F32", "[4, 2]", 0, 32);
  const struct {
    std::string rows, says, remedy;
  } broken[] = {
      {NpyOf("{'descr': '<f4', 'fortran_order': True, 'shape': (4, 2), }", data),
       "rows: it is in Fortran order", "save numpy.ascontiguousarray(array)"},
      {Npy("<i4", "(4, 2)", data), "rows is of <i4", "rows are float32"},
      {Npy("<f4\n\x1b[2J", "(4, 2)", data), "rows: its dtype is <f4\\n\\033[2J",
       "save it as array.astype('<f4')"},
      {whole.substr(0, whole.size() - 1), "rows: an array (4, 2) of <f4 has 32 bytes, and behind",
       "save it again"},
      {NpyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }", data, 2)
           .replace(8, 4, "\xff\xff\xff\xff"),
       "rows: its header has 4294967295 bytes", "save one plain array of numbers"},
      {Safetensors("{" + a + ", " + a + "}", data),
       "rows: its safetensors header names tensor 'a' twice", "save it anew"},
  };
  for (const auto& b : broken) {
    INFO(b.says);
    user.Write("rows", b.rows);
    CheckOneLine(
        user.Strata(absl::StrCat(kImport, "--table item --field item --keys ids.txt --rows rows")),
        2, {b.says, b.remedy});
    CHECK_FALSE(std::filesystem::exists(user.Path("pretrained")));
  }
  user.Write("noise.txt", "1\n\x1b[2J" + std::string(100000, '7') + "\n3\n4\n");
  says("--table item --raw-keys --keys noise.txt --rows items.npy",
       "noise.txt:2: key '\\033[2J" + std::string(96, '7') + "...' is not a whole number");
  // Of data whose features are numbers of their own.
  user.Write("train.libfm", GoodLines(4));
  user.Write("libfm.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: numbers}\n"
             "spec: {data: {format: libfm, train: [train.libfm]}, "
             "model: {type: fm, embeddingDim: 2}}\n");
  CheckSays(user.Strata("import -f libfm.yaml -o pretrained --field 0 --keys ids.txt "
                        "--rows items.npy"),
            2, {"give --raw-keys instead of --field 0"});
  user.Write("keys.txt", "17\n0x12\n5\n18446744073709551615\n");
  CheckSays(user.Strata("import -f libfm.yaml -o pretrained --raw-keys --keys keys.txt "
                        "--rows items.npy --json"),
            0, {"\"checkpoint\":\"pretrained\"", "{\"name\":\"features\",\"rows\":4}"});
  CheckSays(user.Strata("get-row --checkpoint pretrained --key 18"), 0, {"embedding: 2 3"});
}

}  // namespace
}  // namespace strata
