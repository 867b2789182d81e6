// Every command that looks into a model, of a job with three hashed tables whose rows have the same
// keys and other optimizers: what it prints and writes of each table is that table's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {
namespace {

using Json = nlohmann::json;

// Lines of libffm: fields 0, 1 and 2 have the same numbers. A third of those of fields 0 and 2 come
// in the first half alone, so that their rows are gone at the end.
std::string Shoppers(int lines) {
  uint64_t random = 7;
  const auto draw = [&](uint64_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % below;
  };
  std::string text;
  for (int l = 0; l < lines; ++l) {
    const uint64_t ids = l < lines / 2 ? 45 : 30;
    const uint64_t who = draw(ids), what = draw(40), said = draw(ids);
    text += std::to_string((who + what) % 2) + " 0:" + std::to_string(who) +
            ":1 1:" + std::to_string(what) + ":1 2:" + std::to_string(said) + ":0.5\n";
  }
  return text;
}

// The names are not in the order of the alphabet, and one is that of a tensor.
const std::vector<std::string> kTables = {"users", "bias", "said-words"};

struct Shop : User {
  Shop() {
    Write("train.ffm", Shoppers(900));
    Write("eval.ffm", Shoppers(150));
    std::string spec =
        "apiVersion: strata/v1\n"
        "kind: TrainingJob\n"
        "metadata: {name: shop}\n"
        "spec:\n"
        "  data: {format: libffm, train: [train.ffm], eval: [eval.ffm], shuffle: {bufferLines: "
        "16}}\n"
        "  replicas: {servers: 2}\n"
        "  model: {type: fm, embeddingDim: 4}\n"
        "  tables:\n"
        "    - {name: users, lifeCycle: {removal: {everySteps: 3, ttlSteps: 12}}}\n"
        "    - {name: bias, optimizer: {type: adam}}\n"
        "    - {name: said-words, lifeCycle: {removal: {everySteps: 4, ttlSteps: 14}}}\n"
        "  fields:\n"
        "    - {name: who, column: \"0\", kind: multiValued, table: users}\n"
        "    - {name: what, column: \"1\", kind: multiValued, table: bias}\n"
        "    - {name: said, column: \"2\", kind: multiValued, table: said-words}\n"
        "  training: {lanes: 1, batchSize: 16, epochs: 1, seed: 4}\n"
        "  checkpoint: {directory: ck, everySteps: 20, keep: 10}\n"
        "  output: {predictions: own.csv, removed: removed}\n";
    Write("job.yaml", spec);
  }

  std::string Do(const std::string& arguments) const {
    const ProgramResult r = Strata(arguments);
    INFO(arguments << "\n" << r.err);
    REQUIRE(r.exit_code == 0);
    return r.out;
  }
  Json Ask(const std::string& arguments) const { return Json::parse(Do(arguments + " --json")); }
};

using Rows = std::map<uint64_t, std::vector<float>>;  // weights by key

std::map<std::string, Rows> RowsOf(const std::string& checkpoint) {
  const auto rows = CheckpointRows::Open(checkpoint);
  INFO(rows.status());
  REQUIRE(rows.ok());
  std::map<std::string, Rows> out;
  for (uint32_t t = 0; t < rows->tables().tables.size(); ++t) {
    const TableSpec& table = rows->tables().tables[t];
    Rows& of_table = out[table.name];
    const size_t floats = rows->layout(t).dim;
    const absl::Status s = rows->ReadAll(t, [&](Position p, const uint8_t* row) {
      std::vector<float>& weights = of_table[table.KeyAtPosition(p).value];
      weights.resize(floats);
      std::memcpy(weights.data(), row, floats * 4);
      return absl::OkStatus();
    });
    REQUIRE(s.ok());
  }
  return out;
}

// The items of an npy file.
template <typename T>
std::vector<T> Npy(const std::string& bytes) {
  REQUIRE(bytes.size() > 10);
  const size_t header = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  std::vector<T> out((bytes.size() - header) / sizeof(T));
  std::memcpy(out.data(), bytes.data() + header, out.size() * sizeof(T));
  return out;
}

// The rows of a table as arrays tell them: an embedding of 4, then a weight.
Rows Exported(const User& user, const std::string& folder, const std::string& table) {
  const auto keys = Npy<uint64_t>(user.Read(folder + "/" + table + ".keys.npy"));
  const auto embedding = Npy<float>(user.Read(folder + "/" + table + ".embedding.npy"));
  const auto weight = Npy<float>(user.Read(folder + "/" + table + ".weight.npy"));
  REQUIRE((embedding.size() == 4 * keys.size() && weight.size() == keys.size()));
  Rows rows;
  for (size_t i = 0; i < keys.size(); ++i) {
    rows[keys[i]] = {embedding.begin() + static_cast<std::ptrdiff_t>(4 * i),
                     embedding.begin() + static_cast<std::ptrdiff_t>(4 * i + 4)};
    rows[keys[i]].push_back(weight[i]);
  }
  return rows;
}

std::set<uint64_t> KeysOf(const Rows& rows) {
  std::set<uint64_t> keys;
  for (const auto& [key, weights] : rows) keys.insert(key);
  return keys;
}

// Keys of `a` that `b` lacks.
std::set<uint64_t> Gone(const Rows& a, const Rows& b) {
  std::set<uint64_t> gone = KeysOf(a);
  for (const auto& [key, weights] : b) gone.erase(key);
  return gone;
}

// By table number: lines "put TABLE KEY WEIGHTS ..." and "remove TABLE KEY ...".
struct DeltaLines {
  std::map<int, Rows> put;
  std::map<int, std::set<uint64_t>> removed;
};
DeltaLines ReadLines(const std::string& text) {
  DeltaLines out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    int table = -1;
    uint64_t key = 0;
    REQUIRE((words >> what >> table >> key));
    if (what == "remove") {
      out.removed[table].insert(key);
      continue;
    }
    std::vector<float>& weights = out.put[table][key];
    for (float w; words >> w;) weights.push_back(w);
  }
  return out;
}

// What `checkpoint show` calls number N.
int NumberOf(const std::string& shown, const std::string& table) {
  const size_t at = shown.find("table " + table + "  number ");
  INFO(shown);
  REQUIRE(at != std::string::npos);
  return std::atoi(shown.c_str() + at + table.size() + 15);
}

void CheckGetRow(const Shop& shop, const std::map<std::string, Rows>& rows) {
  const char* const fields[] = {"who", "what", "said"};
  for (int f = 0; f < 3; ++f) {
    const std::string& table = kTables[static_cast<size_t>(f)];
    const Rows& of_table = rows.at(table);
    REQUIRE(of_table.contains(7));
    const Json by_field =
        shop.Ask("get-row --checkpoint ck --value 7 --field " + std::string(fields[f]));
    CHECK(by_field.at("table") == table);
    CHECK(by_field.at("field") == f);
    CHECK(by_field.at("exists") == true);
    std::vector<float> weights = by_field.at("segments")[0].at("weights");
    weights.push_back(by_field.at("segments")[1].at("weights")[0]);
    CHECK(weights == of_table.at(7));
    // The same by the field's number, by the table, and by the place of the row.
    const Json by_key = shop.Ask("get-row --checkpoint ck --key 7 --table " + table);
    CHECK(by_key.at("segments") == by_field.at("segments"));
    CHECK(shop.Ask("get-row --checkpoint ck --value 7 --field " + std::to_string(f)) == by_field);
    CHECK(shop.Ask("get-row --checkpoint ck --table " + table + " --position " +
                   by_key.at("position").get<std::string>()) == by_key);
    CHECK(by_key.at("segments")[0].at("state").contains(f == 1 ? "m" : "accumulator"));
  }
  CheckSays(shop.Strata("get-row --checkpoint ck --key 7"), 2,
            {"--table", "users and dense and bias and said-words"});
  CheckSays(shop.Strata("get-row --checkpoint ck --field who --value 7 --table bias"), 2,
            {"field who is of table users, not of bias"});
  CheckSays(shop.Strata("get-row --checkpoint ck --field 3 --value 7"), 2,
            {"there are who, what, said"});
  CheckSays(shop.Strata("get-row --checkpoint ck --field who --value x"), 2, {"--value 'x'"});
}

void CheckExports(const Shop& shop, const std::map<std::string, Rows>& before,
                  const std::map<std::string, Rows>& rows) {
  const Json all = shop.Ask("export --checkpoint ck --output all --with-state");
  std::set<std::string> arrays;
  const Json index = Json::parse(shop.Read("all/index.json"));
  for (const Json& a : index.at("arrays")) {
    CHECK(arrays.insert(a.at("name").get<std::string>()).second);
    CHECK(std::filesystem::exists(shop.Path("all/" + a.at("file").get<std::string>())));
  }
  CHECK(all.at("arrays") == arrays.size());
  for (const std::string& table : kTables) CHECK(Exported(shop, "all", table) == rows.at(table));
  CHECK(arrays.contains("bias.embedding.state.m"));
  CHECK(arrays.contains("dense.bias.updates"));  // of the tensor
  const Json packed = shop.Ask("export --checkpoint ck --output st --format safetensors");
  CHECK(packed.at("arrays") == 3 * 3 + 1);
  CHECK(packed.at("rows") ==
        rows.at("users").size() + rows.at("bias").size() + rows.at("said-words").size());
  shop.Do("export --checkpoint ck --output one --table bias");
  CHECK(Exported(shop, "one", "bias") == rows.at("bias"));
  CHECK_FALSE(std::filesystem::exists(shop.Path("one/users.keys.npy")));
  CheckSays(shop.Strata("export --checkpoint ck --output no --table words"), 2,
            {"no table 'words'", "users and dense and bias and said-words"});
  // What changed, and what is gone, of each table.
  shop.Do("export --checkpoint ck --output since --since 20");
  for (const std::string& table : kTables) {
    INFO(table);
    const auto gone = Npy<uint64_t>(shop.Read("since/" + table + ".removed_keys.npy"));
    CHECK(std::set<uint64_t>(gone.begin(), gone.end()) == Gone(before.at(table), rows.at(table)));
    CHECK(gone.empty() == (table == "bias"));
    for (const auto& [key, weights] : Exported(shop, "since", table)) {
      CHECK(weights == rows.at(table).at(key));
    }
  }
}

void CheckDeltas(const Shop& shop, const std::map<std::string, Rows>& before,
                 const std::map<std::string, Rows>& rows) {
  const std::string shown = shop.Do("checkpoint show ck");
  shop.Do("export --checkpoint ck --output whole --format delta");
  shop.Do("export --checkpoint ck --output changes --format delta --since 20");
  shop.Do("export --checkpoint ck --output item --format delta --since 20 --table bias");
  std::map<std::string, int> numbers;
  for (const char* folder : {"whole", "changes", "item"}) {
    const Json index = Json::parse(shop.Read(std::string(folder) + "/index.json"));
    for (const Json& t : index.at("tables")) numbers[t.at("name")] = t.at("number");
  }
  const DeltaLines whole = ReadLines(shop.Do("delta whole --rows")),
                   changes = ReadLines(shop.Do("delta changes --rows")),
                   item = ReadLines(shop.Do("delta item --rows"));
  CHECK(whole.removed.empty());
  for (const std::string& table : kTables) {
    INFO(table);
    const int number = numbers.at(table);
    CHECK(number == NumberOf(shown, table));
    CHECK(whole.put.at(number) == rows.at(table));
    const std::set<uint64_t> gone = Gone(before.at(table), rows.at(table));
    CHECK((changes.removed.contains(number) ? changes.removed.at(number) : std::set<uint64_t>()) ==
          gone);
    // With them, what there was becomes what there is.
    Rows next = before.at(table);
    for (const uint64_t key : gone) next.erase(key);
    for (const auto& [key, weights] : changes.put.at(number)) next[key] = weights;
    CHECK(next == rows.at(table));
  }
  CHECK(item.put.size() == 1);
  CHECK(item.put.at(numbers.at("bias")) == changes.put.at(numbers.at("bias")));
}

void CheckRemoved(const Shop& shop, const std::map<std::string, Rows>& rows) {
  const std::string shown = shop.Do("checkpoint show ck");
  const DeltaLines lines = ReadLines(shop.Do("delta removed --rows"));
  CHECK(lines.put.empty());
  CHECK(lines.removed.size() == 2);
  for (const char* table : {"users", "said-words"}) {
    INFO(table);
    const std::set<uint64_t>& removed = lines.removed.at(NumberOf(shown, table));
    // All 45 keys came; what has no row now was removed, and what has one may have come back.
    for (uint64_t key = 0; key < 45; ++key) {
      if (!rows.at(table).contains(key)) CHECK(removed.contains(key));
    }
    CHECK(*removed.rbegin() < 45);
  }
}

void CheckCheckpoints(const Shop& shop, const std::map<std::string, Rows>& before,
                      const std::map<std::string, Rows>& rows) {
  const Json diff = shop.Ask("checkpoint diff ck/step-000000000020 ck");
  std::set<std::string> names;
  for (const Json& t : diff.at("tables")) {
    const std::string name = t.at("name");
    names.insert(name);
    INFO(t);
    CHECK(t.at("rowsA") == before.at(name).size());
    CHECK(t.at("rowsB") == rows.at(name).size());
    CHECK(t.at("removed") == Gone(before.at(name), rows.at(name)).size());
    CHECK(t.at("added") == Gone(rows.at(name), before.at(name)).size());
  }
  CHECK(names == std::set<std::string>{"users", "dense", "bias", "said-words"});
  for (const char* type : {"fp16", "int8"}) {
    const std::string out = std::string("as-") + type;
    const std::string said = shop.Do("checkpoint quantise ck " + out + " --type " + type);
    for (const std::string& table : kTables) {
      for (const char* segment : {".embedding: ", ".weight: "}) {
        const size_t at =
            said.find(table + segment + std::to_string(rows.at(table).size()) + " x ");
        CHECK(at != std::string::npos);
      }
      const auto keys = Npy<uint64_t>(shop.Read(out + "/" + table + ".keys.npy"));
      CHECK(std::set<uint64_t>(keys.begin(), keys.end()) == KeysOf(rows.at(table)));
    }
    CHECK(shop.Do("checkpoint verify " + out).find("is whole") != std::string::npos);
  }
  shop.Do("checkpoint verify ck");
}

TEST_CASE("commands keep the tables of a checkpoint apart", "[tables]") {
  const Shop shop;
  shop.Do("train -f job.yaml");
  CHECK(shop.Do("predict --checkpoint ck eval.ffm") == shop.Read("own.csv"));
  CHECK(shop.Do("predict --checkpoint ck eval.ffm --dram-bytes 256KiB") == shop.Read("own.csv"));
  const auto before = RowsOf(shop.Path("ck/step-000000000020")), rows = RowsOf(shop.Path("ck"));
  for (const std::string& table : kTables) REQUIRE(rows.at(table).size() > 20);
  CHECK(rows.at("users") != rows.at("bias"));
  CheckGetRow(shop, rows);
  CheckExports(shop, before, rows);
  CheckDeltas(shop, before, rows);
  CheckRemoved(shop, rows);
  CheckCheckpoints(shop, before, rows);
}

TEST_CASE("commands keep the tables of a running job apart", "[tables]") {
  Shop shop;
  shop.Up("--servers 2 --workers 1");
  shop.Do(
      "submit -f job.yaml --set spec.training.epochs=1000000 --set spec.output={} "
      "--set spec.data.eval=[] --set spec.evaluation.everySteps=0");
  // Two servers, whose shards have all partitions, and rows once a step is done.
  Json shards;
  testing::AwaitThat("every server has rows", [&] {
    const ProgramResult r = shop.Strata("shards shop --json");
    if (r.exit_code != 0) return false;
    shards = Json::parse(r.out);
    std::set<std::string> servers;
    for (const Json& s : shards.at("shards")) {
      if (s.at("rows").is_number() && s.at("rows") > 0) servers.insert(s.at("server"));
    }
    return servers.size() == 2;
  });
  uint64_t rows = 0;
  std::map<std::string, uint64_t> of_table;
  for (const Json& s : shards.at("shards")) {
    rows += s.at("rows").get<uint64_t>();
    for (const Json& t : s.at("tables")) of_table[t.at("table")] += t.at("rows").get<uint64_t>();
  }
  CHECK(rows <= 45 + 40 + 45 + 1);
  uint64_t in_tables = 0;
  for (const auto& [table, count] : of_table) in_tables += count;
  CHECK(in_tables == rows);
  for (const std::string& table : kTables) CHECK(of_table[table] > 0);
  const char* const fields[] = {"who", "what", "said"};
  for (size_t f = 0; f < 3; ++f) {
    const Json live = shop.Ask("get-row --job shop --value 7 --field " + std::string(fields[f]));
    CHECK(live.at("table") == kTables[f]);
    CHECK(live.at("segments")[0].at("weights").size() == 4);
    CHECK(shop.Ask("get-row --job shop --key 7 --table " + kTables[f]).at("position") ==
          live.at("position"));
  }
  CheckSays(shop.Strata("get-row --job shop --key 7"), 2, {"--table", "users and dense and bias"});
  shop.Do("cancel shop");
}

}  // namespace
}  // namespace strata
