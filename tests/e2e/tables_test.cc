// Jobs of several hashed tables, end to end in one process.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/disturbed_run.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/reads_below.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

// The small job with the same examples as libffm.
TrainingJob Libffm(const std::string& folder, const std::string& model, int key_step) {
  TrainingJob job = testing::SmallJob(folder);
  const std::string data = folder + "/" + std::to_string(key_step);
  testing::WriteLibffm(data + ".train", 1, 600, 6, 40, key_step);
  testing::WriteLibffm(data + ".eval", 2, 200, 6, 40, key_step);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libffm");
  spec.mutable_data()->set_train(0, data + ".train");
  spec.mutable_data()->set_eval(0, data + ".eval");
  spec.mutable_model()->set_type(model);
  if (model == "lr" || model == "fm") spec.mutable_model()->clear_hidden();
  return job;
}

// Tables t0.., of which field f has number of_field[f].
void UseTables(const std::vector<int>& of_field, TrainingJob& job) {
  JobSpec& spec = *job.mutable_spec();
  for (int t = 0; t <= *std::max_element(of_field.begin(), of_field.end()); ++t) {
    spec.add_tables()->set_name("t" + std::to_string(t));
  }
  for (size_t f = 0; f < of_field.size(); ++f) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::to_string(f));
    field.set_kind("multiValued");
    field.set_table("t" + std::to_string(of_field[f]));
  }
}

std::string Predictions(TrainingJob job, const std::string& path) {
  job.mutable_spec()->mutable_output()->set_predictions(path);
  Train(job);
  return ReadAll(path);
}

// Rows of logistic regression begin at zero, so it is the same model wherever they lie.
TEST_CASE("a model is the same whatever tables its fields are spread over", "[e2e][tables]") {
  const ScratchFolder folder = Folder();
  const std::string out = folder.path() + "/predictions";
  for (const std::string mode : {"bsp", "downpour", "easgd"}) {
    INFO(mode);
    const auto in_mode = [&](TrainingJob job) {
      TrainingSpec& training = *job.mutable_spec()->mutable_training();
      training.set_mode(mode);
      if (mode != "bsp") training.set_lanes(1);  // one lane's windows have one order
      if (mode == "downpour") training.set_n_push(3);
      if (mode == "downpour") training.set_n_fetch(3);
      if (mode == "easgd") training.set_tau(2);
      return job;
    };
    const std::string one = Predictions(in_mode(Libffm(folder.path(), "lr", 1000)), out);
    TrainingJob five = in_mode(Libffm(folder.path(), "lr", 1000));
    UseTables({0, 1, 2, 0, 3, 4}, five);
    CHECK(Predictions(five, out) == one);
    // Each field has the same numbers as the others, and a table of its own.
    TrainingJob same = in_mode(Libffm(folder.path(), "lr", 0));
    UseTables({5, 1, 2, 0, 3, 4}, same);
    CHECK(Predictions(same, out) == one);
    // In one table they are other features.
    if (mode == "bsp") {
      CHECK(Predictions(Libffm(folder.path(), "lr", 0), out) != one);
    }
  }
}

// Which keys a checkpoint has, by table.
std::map<std::string, std::set<uint64_t>> KeysOf(const std::string& directory) {
  const auto rows = CheckpointRows::Open(directory);
  INFO(rows.status());
  REQUIRE(rows.ok());
  std::map<std::string, std::set<uint64_t>> keys;
  for (uint32_t t = 0; t < rows->tables().tables.size(); ++t) {
    const TableSpec& table = rows->tables().tables[t];
    if (table.kind == TableKind::kDense) continue;
    std::set<uint64_t>& of_table = keys[table.name];
    REQUIRE(rows->ReadAll(t,
                          [&](Position p, const uint8_t*) {
                            of_table.insert(table.KeyAtPosition(p).value);
                            return absl::OkStatus();
                          })
                .ok());
    CHECK(rows->rows(t) == of_table.size());
  }
  return keys;
}

// Table `number` of many: widths, optimizers, codecs and life cycles of its own.
void MakeOwn(int number, TableConfig& table) {
  const char* const optimizers[] = {"adagrad", "adam", "sgd", "momentum", "ftrl"};
  const char* const codecs[] = {"float32", "bf16", "int8"};
  table.set_dim(static_cast<uint32_t>(1 + number % 7));
  table.mutable_optimizer()->set_type(optimizers[number % 5]);
  table.set_pull_codec(codecs[number % 3]);
  if (number % 8 != 5) return;
  LifeCycleSpec& life_cycle = *table.mutable_life_cycle();
  life_cycle.mutable_admission()->set_type("exact");
  life_cycle.mutable_admission()->set_min_steps(number % 16 == 5 ? 255 : 2);  // never, or soon
  life_cycle.mutable_admission()->set_filter_bytes("256KiB");
  life_cycle.mutable_removal()->set_every_steps(static_cast<uint32_t>(3 + number % 4));
  life_cycle.mutable_removal()->set_ttl_steps(8);
}

TEST_CASE("sixty-four tables in one job, each with its own of everything", "[e2e][tables]") {
  constexpr int kFields = 64, kIds = 3;
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::WriteLibffm(folder.path() + "/train", 1, 300, kFields, kIds, 0);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libffm");
  spec.mutable_data()->set_train(0, folder.path() + "/train");
  spec.mutable_data()->clear_eval();
  spec.mutable_model()->set_type("mmoe");
  spec.mutable_model()->clear_embedding_dim();
  spec.mutable_model()->clear_hidden();
  spec.mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
  std::vector<int> tables;
  for (int f = 0; f < kFields; ++f) tables.push_back(kFields - 1 - f);
  UseTables(tables, job);
  for (int t = 0; t < kFields; ++t) MakeOwn(t, *spec.mutable_tables(t));
  const JobStatus status = Train(job);
  const auto keys = KeysOf(folder.path() + "/checkpoints");
  REQUIRE(keys.size() == kFields);
  std::set<std::string> kinds;
  for (const TableConfig& table : spec.tables()) {
    INFO(table.name());
    const bool never = table.life_cycle().admission().min_steps() == 255;
    CHECK(keys.at(table.name()) == (never ? std::set<uint64_t>{} : std::set<uint64_t>{0, 1, 2}));
    kinds.insert(table.optimizer().type() + table.pull_codec());
  }
  CHECK(kinds.size() == 15);
  TrainingJob spread = job;
  spread.mutable_spec()->mutable_replicas()->set_servers(3);
  spread.mutable_spec()->mutable_replicas()->set_workers(2);
  spread.mutable_spec()->mutable_checkpoint()->clear_directory();
  CHECK(Train(spread).model_hash() == status.model_hash());
}

TEST_CASE("five tables: life cycles, codecs and optimizers are each table's own", "[e2e][tables]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::UseFiveTables(folder.path(), 600, 400, job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
  spec.mutable_checkpoint()->set_every_steps(10);
  const JobStatus status = Train(job);
  CHECK(status.life_cycle().admitted() > 0);
  CHECK(status.life_cycle().removed_by_ttl() > 0);
  CHECK(status.life_cycle().removed_by_score() > 0);
  const auto keys = KeysOf(folder.path() + "/checkpoints");
  TrainingJob alive = job;
  alive.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/alive");
  for (const int t : {2, 3}) alive.mutable_spec()->mutable_tables(t)->clear_life_cycle();
  Train(alive);
  const auto all = KeysOf(folder.path() + "/alive");
  for (const char* name : {"first", "second", "fifth"}) CHECK(keys.at(name) == all.at(name));
  for (const char* name : {"third", "fourth"}) {
    CHECK(keys.at(name).size() > 0);
    CHECK(keys.at(name).size() < all.at(name).size());
  }
  // Each is a difference of the model.
  const auto hash = [&](auto change) {
    TrainingJob other = job;
    other.mutable_spec()->mutable_checkpoint()->Clear();
    change(*other.mutable_spec());
    return Train(other).model_hash();
  };
  const std::string same = hash([](JobSpec&) {});
  CHECK(same == status.model_hash());
  CHECK(hash([](JobSpec& s) { s.mutable_tables(1)->set_pull_codec("float32"); }) != same);
  CHECK(hash([](JobSpec& s) { s.mutable_tables(3)->set_pull_codec("float32"); }) != same);
  CHECK(hash([](JobSpec& s) { s.mutable_tables(1)->clear_init_scale(); }) != same);
  CHECK(hash([](JobSpec& s) { s.mutable_tables(4)->clear_optimizer(); }) != same);
  CHECK(hash([](JobSpec& s) { s.mutable_tables(4)->set_dim(9); }) != same);
  // What is given twice is the same.
  CHECK(hash([](JobSpec& s) { s.mutable_tables(0)->set_pull_codec("float32"); }) == same);
}

TEST_CASE("a job starts from the tables of its names, whatever their numbers", "[e2e][tables]") {
  const ScratchFolder folder = Folder();
  const std::string out = folder.path() + "/predictions";
  TrainingJob job = Libffm(folder.path(), "fm", 0);
  UseTables({0, 1, 2, 0, 1, 2}, job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_tables(1)->mutable_optimizer()->set_type("adam");
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
  const auto from = [](TrainingJob other, const JobStatus& first) {
    other.mutable_spec()->mutable_checkpoint()->Clear();
    other.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(first.checkpoint());
    return other;
  };
  const TrainingJob next = from(job, Train(job));
  const std::string same = Predictions(next, out);
  TrainingJob anew = next;
  anew.mutable_spec()->mutable_model()->clear_init_from();
  CHECK(Predictions(anew, out) != same);
  TrainingJob turned = next;
  turned.mutable_spec()->mutable_tables()->SwapElements(1, 2);
  CHECK(Predictions(turned, out) == same);
  turned.mutable_spec()->mutable_tables()->SwapElements(0, 1);
  CHECK(Predictions(turned, out) == same);

  // What waits for a row does so in its own table: a filter of another one is not taken for it.
  spec.mutable_checkpoint()->set_directory(folder.path() + "/filters");
  for (const int t : {1, 2}) {
    AdmissionSpec& admission = *spec.mutable_tables(t)->mutable_life_cycle()->mutable_admission();
    admission.set_type("counting");
    admission.set_min_steps(2);
    admission.set_filter_bytes(t == 1 ? "256KiB" : "512KiB");
  }
  TrainingJob filtered = from(job, Train(job));
  Train(filtered);
  filtered.mutable_spec()->mutable_tables()->SwapElements(1, 2);
  Train(filtered);
}

// Two tables, of five fields and of one; the rows of both have room in DRAM, but those of the first
// not in half of it.
TrainingJob Unequal(const std::string& folder) {
  TrainingJob job = Libffm(folder, "fm", 0);
  testing::WriteLibffm(folder + "/train", 1, 600, 6, 1000, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_train(0, folder + "/train");
  spec.mutable_model()->set_embedding_dim(16);
  spec.mutable_training()->set_epochs(3);
  spec.mutable_storage()->set_shards_per_server(1);
  spec.mutable_storage()->set_dram_bytes_per_server("640KiB");
  UseTables({0, 0, 0, 0, 0, 1}, job);
  return job;
}

TEST_CASE("shares of DRAM say where rows lie, and change no result", "[e2e][tables]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Unequal(folder.path());
  TrainingJob whole = job;
  whole.mutable_spec()->mutable_storage()->clear_dram_bytes_per_server();
  const JobStatus reference = Train(whole);
  const std::string& hash = reference.model_hash();
  const auto with = [&](uint32_t share, const std::string& checkpoints) {
    TrainingJob run = job;
    run.mutable_spec()->mutable_tables(0)->set_dram_share(share);
    if (checkpoints.empty()) return run;
    CheckpointSpec& checkpoint = *run.mutable_spec()->mutable_checkpoint();
    checkpoint.set_directory(folder.path() + checkpoints);
    checkpoint.set_every_steps(10);
    checkpoint.set_keep(5);
    return run;
  };
  const JobStatus equal = TrainBelowDram(with(1, "/equal"));
  CHECK(equal.model_hash() == hash);
  {
    const testing::ReadsBelow reads;
    CHECK(Train(with(5, "/unequal")).model_hash() == hash);
    CHECK(reads.count() == 0);
  }

  // A checkpoint is taken by jobs of other shares, which say nothing of it.
  const std::string step = "/step-000000000010";
  std::filesystem::create_directory(folder.path() + "/resumed");
  std::filesystem::copy(folder.path() + "/equal" + step, folder.path() + "/resumed" + step,
                        std::filesystem::copy_options::recursive);
  const JobStatus resumed = Train(with(5, "/resumed"), /*resume=*/true);
  CHECK(resumed.model_hash() == hash);
  CHECK(resumed.step() == reference.step());
  const auto from = [&](uint32_t share) {
    TrainingJob next = with(share, "");
    next.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(equal.checkpoint());
    return Train(next);
  };
  const JobStatus same = from(1), other = from(5);
  CHECK(other.model_hash() == same.model_hash());
  CHECK(other.model_hash() != hash);
  for (const JobStatus& status : {resumed, other}) {
    for (const JobCondition& c : status.conditions()) {
      CHECK(c.message().find("dramShare") == std::string::npos);
    }
  }
}

TEST_CASE("five tables train in every mode", "[e2e][tables]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::UseFiveTables(folder.path(), 4000, 40, job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_tables(2)->clear_life_cycle();
  spec.mutable_tables(3)->clear_life_cycle();
  spec.mutable_training()->set_epochs(3);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  for (const char* mode : {"async", "downpour", "easgd"}) {
    INFO(mode);
    spec.mutable_training()->set_mode(mode);
    const JobStatus status = Train(job);
    CHECK(status.result().auc() > 0.65);
  }
}

// Rows that stay on a device, which is host threads here, beside servers that have them there.
TEST_CASE("five tables whose rows stay on a shared device", "[e2e][tables][device]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::UseFiveLikeTables(folder.path(), 600, 100, job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_worker()->set_device("host");
  const std::string hash = Train(job).model_hash();  // through messages
  spec.mutable_storage()->set_gpu_bytes_per_server("4MiB");
  spec.mutable_storage()->set_gpu_backend("host");
  for (const uint32_t nodes : {1, 2}) {
    INFO(nodes << " servers and workers");
    spec.mutable_replicas()->set_servers(nodes);
    spec.mutable_replicas()->set_workers(nodes);
    CHECK(Train(job).model_hash() == hash);
  }
}

}  // namespace
}  // namespace strata
