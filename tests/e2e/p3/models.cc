#include "tests/e2e/p3/models.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/removed_keys.h"
#include "tests/e2e/cluster/small_job.h"

namespace strata::testing {
namespace {

// Some 2,700 features, 40 steps.
void ManyRows(const std::string& folder, TrainingJob& job) {
  WriteLibfm(folder + "/train.libfm", 1, 600, 6, 1000);
  job.mutable_spec()->mutable_training()->set_epochs(4);
}

void ManyOptimizers(const std::string& folder, TrainingJob& job) {
  ManyRows(folder, job);
  UseManyOptimizers(*job.mutable_spec());
}

// Some 5,000 features with rows of 144 bytes, 40 steps.
void WideFm(const std::string& folder, TrainingJob& job) { job = ManyFeaturesJob(folder, 16, 2); }

void DlrmBf16(const std::string& folder, TrainingJob& job) {
  ManyRows(folder, job);
  job.mutable_spec()->mutable_model()->set_type("dlrm");
  job.mutable_spec()->mutable_training()->set_pull_codec("bf16");
}

void DcnInt8(const std::string& folder, TrainingJob& job) {
  ManyRows(folder, job);
  job.mutable_spec()->mutable_model()->set_type("dcn_v2");
  job.mutable_spec()->mutable_training()->set_pull_codec("int8");
}

// Features that rest, and a rule every seventh step. 80 steps.
void LifeCycle(const std::string& folder, TrainingJob& job) {
  WriteLibfm(folder + "/train.libfm", 1, 600, 6, 300);
  job.mutable_spec()->mutable_training()->set_epochs(8);
  job.mutable_spec()->mutable_life_cycle()->mutable_removal()->set_every_steps(7);
}

void Exact(const std::string& folder, TrainingJob& job) {
  LifeCycle(folder, job);
  AdmissionSpec& a = *job.mutable_spec()->mutable_life_cycle()->mutable_admission();
  a.set_type("exact");
  a.set_min_steps(3);
  a.set_filter_bytes("256KiB");
  job.mutable_spec()->mutable_life_cycle()->mutable_removal()->set_ttl_steps(8);
}

void Score(const std::string& folder, TrainingJob& job) {
  LifeCycle(folder, job);
  AdmissionSpec& a = *job.mutable_spec()->mutable_life_cycle()->mutable_admission();
  a.set_type("probability");
  a.set_probability(0.5f);
  RemovalSpec& r = *job.mutable_spec()->mutable_life_cycle()->mutable_removal();
  r.mutable_score()->set_below(2.0f);
  r.mutable_score()->set_decay(0.7f);
  r.mutable_score()->set_decay_steps(5);
  r.set_bytes_per_partition("96");
}

void Counts(const std::string& folder, TrainingJob& job) {
  LifeCycle(folder, job);
  AdmissionSpec& a = *job.mutable_spec()->mutable_life_cycle()->mutable_admission();
  a.set_type("counting");
  a.set_min_steps(2);
  a.set_filter_bytes("256KiB");
  RemovalSpec& r = *job.mutable_spec()->mutable_life_cycle()->mutable_removal();
  r.set_ttl_steps(8);
  r.mutable_count()->set_below(3);
  r.mutable_count()->set_idle_steps(6);
  r.mutable_norm()->set_below(0.14f);
}

// "label,age,price,user,tags" lines; tags hold none to three values.
void WriteCsv(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  out << "label,age,price,user,tags\n";
  for (int l = 0; l < lines; ++l) {
    const uint64_t user = random() % 30, age = random() % 7;
    out << (user + age) % 2 << ',' << age << ',' << random() % 100 * 0.01 << ",u" << user << ',';
    for (uint64_t tags = random() % 4, t = 0; t < tags; ++t) {
      out << (t > 0 ? "|" : "") << 't' << random() % 12;
    }
    out << '\n';
  }
}

// Numbers, one value, and several values of a field, pooled; 24 steps.
void Csv(const std::string& folder, TrainingJob& job, const char* type,
         const char* pooling = "sum") {
  WriteCsv(folder + "/train.csv", 1, 500);
  WriteCsv(folder + "/eval.csv", 2, 100);
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format("csv");
  data.set_train(0, folder + "/train.csv");
  data.set_eval(0, folder + "/eval.csv");
  ColumnsSpec& columns = *data.mutable_columns();
  columns.set_label("label");
  columns.add_numeric("age");
  columns.add_numeric("price");
  columns.add_categorical("user");
  columns.add_multi_valued()->set_column("tags");
  columns.mutable_multi_valued(0)->set_pooling(pooling);
  job.mutable_spec()->mutable_model()->set_type(type);
  job.mutable_spec()->mutable_training()->set_epochs(3);
}

void CsvLr(const std::string& folder, TrainingJob& job) { Csv(folder, job, "lr"); }
void CsvFm(const std::string& folder, TrainingJob& job) { Csv(folder, job, "fm"); }
void CsvWideDeep(const std::string& folder, TrainingJob& job) { Csv(folder, job, "wide_deep"); }
void CsvDeepFm(const std::string& folder, TrainingJob& job) { Csv(folder, job, "deepfm", "mean"); }
void CsvDcn(const std::string& folder, TrainingJob& job) { Csv(folder, job, "dcn_v2"); }
void CsvLowRankDcn(const std::string& folder, TrainingJob& job) {
  Csv(folder, job, "dcn_v2", "mean");
  job.mutable_spec()->mutable_model()->set_cross_rank(5);
}
void CsvDlrm(const std::string& folder, TrainingJob& job) {
  Csv(folder, job, "dlrm");
  job.mutable_spec()->mutable_model()->add_bottom_hidden(12);
}

// Some 5,600 features in five tables, of which two have life cycles. Tables share DRAM equally, and
// `first` has the features of two fields and the sequence: most of its rows have no room in little
// DRAM. 76 steps.
void FiveTables(const std::string& folder, TrainingJob& job) {
  UseFiveTables(folder, 1200, 3000, job);
  WidenTables(job);
  job.mutable_spec()->mutable_training()->set_epochs(4);
}

// ",stars,visits,weight" of line l of csv, and its header's for 0: some labels are empty, and some
// lines weigh nothing.
std::string TargetsOf(int l) {
  if (l == 0) return ",stars,visits,weight";
  const int stars = l * 31 % 9, visits = l * 17 % 5, weight = l * 13 % 7;
  return l % 4 == 0 ? ",," + std::to_string(visits) + ","
                    : "," + std::to_string(stars * 0.5) + ",," + std::to_string(weight * 0.3);
}

// Three labels of three losses, and weights.
void UseTargets(JobSpec& spec) {
  const auto add = [&spec](const char* label, const char* kind, const char* loss) {
    LabelConfig& config = *spec.add_labels();
    config.set_name(label);
    config.set_kind(kind);
    config.set_loss(loss);
    config.set_weight(spec.labels_size() == 1 ? 1.0f : 0.3f);
  };
  add("label", "binary", "logloss");
  add("stars", "real", "huber");
  add("visits", "count", "poisson");
  spec.set_sample_weight("weight");
}

void CsvLabels(const std::string& folder, TrainingJob& job, const char* type) {
  Csv(folder, job, type);
  for (const char* name : {"/train.csv", "/eval.csv"}) {
    std::ifstream in(folder + name);
    std::string line, text;
    for (int l = 0; std::getline(in, line); ++l) text += line + TargetsOf(l) + '\n';
    in.close();
    std::ofstream(folder + name) << text;
  }
  job.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
  UseTargets(*job.mutable_spec());
}

void LabelledDeepFm(const std::string& folder, TrainingJob& job) {
  CsvLabels(folder, job, "deepfm");
}
// One of them by another loss.
void LabelledExperts(const std::string& folder, TrainingJob& job) {
  CsvLabels(folder, job, "mmoe");
  ModelSpec& model = *job.mutable_spec()->mutable_model();
  model.clear_hidden();
  model.add_expert_hidden(8);
  model.add_tower_hidden(6);
  job.mutable_spec()->mutable_labels(1)->set_loss("squared");
}
// Its labels state their means.
void LabelledTowers(const std::string& folder, TrainingJob& job) {
  CsvLabels(folder, job, "shared_bottom");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_labels(0)->set_mean(0.4f);
  spec.mutable_labels(1)->set_mean(2.0f);
  spec.mutable_labels(2)->set_mean(1.5f);
}

// The six features of each line as columns of csv, the last two as values of one.
void WriteManyLabels(const std::string& libfm, const std::string& csv) {
  std::ifstream in(libfm);
  std::ofstream out(csv);
  out << "label,a,b,c,d,tags" << TargetsOf(0) << '\n';
  std::string token;
  for (int l = 1; in >> token; ++l) {
    out << token;
    for (int f = 0; f < 6 && in >> token; ++f) {
      out << (f == 5 ? '|' : ',') << token.substr(0, token.find(':'));
    }
    out << TargetsOf(l) << '\n';
  }
}

// The lines of ManyRows, with labels, weights, and fields of which one is pooled by max.
void ManyLabels(const std::string& folder, TrainingJob& job) {
  ManyRows(folder, job);
  JobSpec& spec = *job.mutable_spec();
  DataSpec& data = *spec.mutable_data();
  WriteManyLabels(data.train(0), folder + "/train.csv");
  data.set_format("csv");
  data.set_train(0, folder + "/train.csv");
  if (data.eval_size() > 0) {
    WriteManyLabels(data.eval(0), folder + "/eval.csv");
    data.set_eval(0, folder + "/eval.csv");
  }
  for (const char* name : {"a", "b", "c", "d", "tags"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("tags") ? "multiValued" : "categorical");
    if (field.kind() == "multiValued") field.set_pooling("max");
  }
  UseTargets(spec);
}

}  // namespace

const std::vector<Model>& Models() {
  static const std::vector<Model> models = {
      {.name = "deepfm", .make = ManyRows, .dram = "96KiB", .hbm = "128KiB"},
      {.name = "many optimizers", .make = ManyOptimizers, .dram = "80KiB", .hbm = "128KiB"},
      {.name = "wide fm", .make = WideFm, .dram = "192KiB", .hbm = "256KiB"},
      {.name = "dlrm, bf16",
       .make = DlrmBf16,
       .dram = "128KiB",
       .hbm = "128KiB",
       .below_on = 2,
       .one_shard = true},
      {.name = "dcn_v2, int8",
       .make = DcnInt8,
       .dram = "128KiB",
       .hbm = "128KiB",
       .below_on = 2,
       .one_shard = true},
      {.name = "exact",
       .make = Exact,
       .dram = "80KiB",
       .hbm = "128KiB",
       .below_on = 1,
       .life_cycle = true},
      {.name = "score",
       .make = Score,
       .dram = "80KiB",
       .hbm = "128KiB",
       .below_on = 1,
       .life_cycle = true},
      {.name = "counts",
       .make = Counts,
       .dram = "80KiB",
       .hbm = "128KiB",
       .below_on = 1,
       .life_cycle = true},
      {.name = "five tables",
       .make = FiveTables,
       .dram = "320KiB",
       .hbm = "1280KiB",
       .dram_of_four = "640KiB",
       .one_shard = true,
       .life_cycle = true,
       .mostly_below = "first"},
      {.name = "csv lr", .make = CsvLr},
      {.name = "csv fm", .make = CsvFm},
      {.name = "csv wide_deep", .make = CsvWideDeep},
      {.name = "csv deepfm, mean", .make = CsvDeepFm},
      {.name = "csv dcn_v2", .make = CsvDcn},
      {.name = "csv dcn_v2 of low rank, mean", .make = CsvLowRankDcn},
      {.name = "csv dlrm", .make = CsvDlrm},
      {.name = "csv deepfm, three labels, weights", .make = LabelledDeepFm},
      {.name = "csv mmoe, three labels, weights", .make = LabelledExperts},
      {.name = "csv shared_bottom, three labels of stated means, weights", .make = LabelledTowers},
      {.name = "three labels, weights",
       .make = ManyLabels,
       .dram = "112KiB",
       .hbm = "128KiB",
       .below_on = 2},
  };
  return models;
}

Reference MakeReference(const Model& model, const std::string& folder, uint32_t epochs) {
  const std::string place = folder + "/" + model.name;
  std::filesystem::create_directories(place);
  Reference reference;
  reference.job = SmallJob(place);
  model.make(place, reference.job);
  if (epochs > 0) reference.job.mutable_spec()->mutable_training()->set_epochs(epochs);
  TrainingJob run = reference.job;
  if (model.life_cycle) run.mutable_spec()->mutable_output()->set_removed(place + "/removed");
  reference.mostly_below = model.mostly_below;
  if (!reference.mostly_below.empty()) {
    reference.checkpoint = place + "/checkpoint";
    run.mutable_spec()->mutable_checkpoint()->set_directory(reference.checkpoint);
  }
  reference.status = Train(run);
  if (model.life_cycle) reference.removed = RemovedKeysIn(place + "/removed");
  return reference;
}

void UseManyOptimizers(JobSpec& spec) {
  OptimizersSpec& o = *spec.mutable_optimizer();
  o.Clear();
  o.mutable_sparse()->set_type("rowwise_adagrad");
  o.mutable_sparse()->set_clip_norm(0.002f);
  o.mutable_sparse()->set_weight_decay(1e-3f);
  ScheduleSpec& sparse = *o.mutable_sparse()->mutable_schedule();
  sparse.set_type("cosine");
  sparse.set_warmup_steps(5);
  sparse.set_decay_steps(40);
  sparse.set_final_factor(0.1f);
  o.mutable_linear()->set_type("ftrl");
  o.mutable_linear()->set_learning_rate(0.5f);
  o.mutable_linear()->set_l1(0.01f);
  o.mutable_linear()->set_l2(0.01f);
  ScheduleSpec& linear = *o.mutable_linear()->mutable_schedule();
  linear.set_type("poly");
  linear.set_decay_steps(55);
  linear.set_power(0.7f);
  linear.set_final_factor(0.2f);
  o.mutable_dense()->set_type("momentum");
  o.mutable_dense()->set_nesterov(true);
  o.mutable_dense()->set_clip_value(0.05f);
  o.mutable_dense()->set_weight_decay(1e-4f);
  ScheduleSpec& dense = *o.mutable_dense()->mutable_schedule();
  dense.set_type("step");
  dense.set_decay_steps(12);
  dense.set_gamma(0.7f);
}

}  // namespace strata::testing
