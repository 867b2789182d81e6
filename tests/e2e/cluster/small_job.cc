#include "tests/e2e/cluster/small_job.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace strata::testing {

namespace {

// What a line has of a feature.
using Token = std::function<std::string(int field, int id)>;

void WriteLines(const std::string& path, uint64_t seed, int lines, int fields, int ids,
                const Token& token) {
  std::mt19937_64 weights(7);
  std::normal_distribution<double> normal(0, 1);
  constexpr int kRank = 3;
  std::vector<double> linear(static_cast<size_t>(fields * ids));
  std::vector<double> latent(static_cast<size_t>(fields * ids * kRank));
  for (double& w : linear) w = normal(weights);
  for (double& v : latent) v = normal(weights);
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  for (int l = 0; l < lines; ++l) {
    double logit = -0.3;
    std::vector<double> sum(kRank, 0.0);
    std::string features;
    for (int f = 0; f < fields; ++f) {
      const int id = static_cast<int>(random() % static_cast<uint64_t>(ids));
      const size_t at = static_cast<size_t>(f * ids + id);
      logit += linear[at] * 1.2;
      for (int k = 0; k < kRank; ++k) {
        logit += 0.4 * sum[k] * latent[at * kRank + k];
        sum[k] += latent[at * kRank + k];
      }
      features += ' ' + token(f, id) + ":1";
    }
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    out << (u < 1 / (1 + std::exp(-logit)) ? "1" : "-1") << features << '\n';
  }
}

}  // namespace

void WriteLibfm(const std::string& path, uint64_t seed, int lines, int fields, int ids) {
  WriteLines(path, seed, lines, fields, ids,
             [](int field, int id) { return std::to_string(field * 1000 + id); });
}

void WriteLibffm(const std::string& path, uint64_t seed, int lines, int fields, int ids,
                 int key_step) {
  WriteLines(path, seed, lines, fields, ids, [key_step](int field, int id) {
    return std::to_string(field) + ':' + std::to_string(field * key_step + id);
  });
}

namespace {

// The same examples as csv, with a column `clicks`: what the lines before had in f0, none to six.
void WriteVisits(const std::string& path, uint64_t seed, int lines, int ids) {
  const std::string source = path + ".libffm";
  WriteLibffm(source, seed, lines, 6, ids, 0);
  std::ifstream in(source);
  std::ofstream out(path);
  out << "label,f0,f1,f2,f3,f4,f5,clicks\n";
  std::deque<std::string> before;
  std::string line;
  for (size_t l = 0; std::getline(in, line); ++l) {
    std::istringstream words(line);
    std::string word, first;
    words >> word;
    out << (word == "1" ? '1' : '0');
    while (words >> word) {
      const std::string id = word.substr(2, word.size() - 4);  // of "0:id:1"
      if (first.empty()) first = id;
      out << ',' << id;
    }
    out << ',';
    for (size_t c = 0; c < std::min(before.size(), l % 7); ++c) {
      out << (c > 0 ? "|" : "") << before[c];
    }
    out << '\n';
    before.push_front(first);
    if (before.size() > 6) before.pop_back();
  }
}

constexpr int kTableOf[] = {0, 1, 2, 0, 3, 4};  // by field

void AddFiveTables(JobSpec& spec) {
  for (const char* name : {"first", "second", "third", "fourth", "fifth"}) {
    spec.add_tables()->set_name(name);
  }
  for (int f = 0; f < 6; ++f) {
    FieldConfig& field = *spec.add_fields();
    field.set_name("f" + std::to_string(f));
    field.set_column(std::to_string(f));
    field.set_kind("multiValued");
    field.set_table(spec.tables(kTableOf[f]).name());
  }
  TableConfig& second = *spec.mutable_tables(1);
  second.mutable_optimizer()->set_type("adam");
  second.set_init_scale(0.05f);
  spec.mutable_tables(4)->mutable_optimizer()->set_type("momentum");
}

}  // namespace

void UseFiveTables(const std::string& folder, int lines, int ids, TrainingJob& job) {
  WriteVisits(folder + "/train.csv", 1, lines, ids);
  WriteVisits(folder + "/eval.csv", 2, 200, ids);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->mutable_columns()->set_label("label");
  spec.mutable_data()->set_train(0, folder + "/train.csv");
  if (spec.data().eval_size() > 0) spec.mutable_data()->set_eval(0, folder + "/eval.csv");
  spec.mutable_model()->set_type("din");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->clear_embedding_dim();
  for (const uint32_t width : {16, 8}) spec.mutable_model()->add_hidden(width);
  spec.mutable_model()->add_attention_hidden(6);
  AddFiveTables(spec);
  for (FieldConfig& field : *spec.mutable_fields()) field.set_column(field.name());
  spec.mutable_fields(0)->set_kind("categorical");
  FieldConfig& clicks = *spec.add_fields();
  clicks.set_name("clicks");
  clicks.set_kind("sequence");
  clicks.set_max_length(5);
  clicks.set_table("first");
  const uint32_t dims[] = {8, 4, 16, 6, 8};
  for (int t = 0; t < 5; ++t) spec.mutable_tables(t)->set_dim(dims[t]);
  spec.mutable_tables(1)->set_pull_codec("bf16");
  LifeCycleSpec& third = *spec.mutable_tables(2)->mutable_life_cycle();
  third.mutable_admission()->set_type("exact");
  third.mutable_admission()->set_min_steps(2);
  third.mutable_admission()->set_filter_bytes("256KiB");
  third.mutable_removal()->set_every_steps(7);
  third.mutable_removal()->set_ttl_steps(8);
  TableConfig& fourth = *spec.mutable_tables(3);
  fourth.set_pull_codec("int8");
  RemovalSpec& removal = *fourth.mutable_life_cycle()->mutable_removal();
  removal.set_every_steps(5);
  removal.mutable_score()->set_below(0.2f);
  removal.mutable_score()->set_decay(0.7f);
  removal.mutable_score()->set_decay_steps(5);
}

void WidenTables(TrainingJob& job) {
  for (TableConfig& table : *job.mutable_spec()->mutable_tables()) table.set_dim(4 * table.dim());
}

void UseFiveLikeTables(const std::string& folder, int lines, int ids, TrainingJob& job) {
  WriteLibffm(folder + "/train.libffm", 1, lines, 6, ids, 0);
  WriteLibffm(folder + "/eval.libffm", 2, 200, 6, ids, 0);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libffm");
  spec.mutable_data()->set_train(0, folder + "/train.libffm");
  if (spec.data().eval_size() > 0) spec.mutable_data()->set_eval(0, folder + "/eval.libffm");
  AddFiveTables(spec);
}

TrainingJob SmallJob(const std::string& folder) {
  WriteLibfm(folder + "/train.libfm", 1, 600, 6, 40);
  WriteLibfm(folder + "/eval.libfm", 2, 200, 6, 40);
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("small");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train(folder + "/train.libfm");
  spec.mutable_data()->add_eval(folder + "/eval.libfm");
  spec.mutable_data()->mutable_shuffle()->set_buffer_lines(64);
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->set_embedding_dim(8);
  spec.mutable_model()->add_hidden(16);
  spec.mutable_model()->add_hidden(8);
  spec.mutable_optimizer()->mutable_sparse()->set_type("adagrad");
  spec.mutable_optimizer()->mutable_dense()->set_type("adam");
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(4);
  spec.mutable_training()->set_batch_size(16);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_training()->set_threads(1);
  spec.mutable_storage()->set_partitions(256);
  spec.mutable_storage()->set_shards_per_server(4);
  return job;
}

TrainingJob ManyFeaturesJob(const std::string& folder, uint32_t dim, uint32_t epochs) {
  TrainingJob job = SmallJob(folder);
  WriteLibfm(folder + "/train.libfm", 1, 1280, 6, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->set_embedding_dim(dim);
  spec.mutable_training()->set_epochs(epochs);
  return job;
}

}  // namespace strata::testing
