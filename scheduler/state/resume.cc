#include "scheduler/state/resume.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/shown.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "scheduler/state/start.h"

namespace strata::scheduler {
namespace {

// Fields of the job file that differ, with what they are and were.
class Settings {
 public:
  template <typename T>
  bool Same(absl::string_view field, const T& now, const T& then) {
    if (now == then) return true;
    all_.push_back({std::string(field), Shown(now), Shown(then)});
    return false;
  }
  bool empty() const { return all_.empty(); }
  // "spec.training.lanes is 2, was 4".
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const Setting& s : all_)
      lines.push_back(absl::StrCat(s.field, " is ", s.now, ", was ", s.then));
    return lines;
  }
  // REQUIRES: there is one.
  absl::Status First() const {
    const Setting& s = all_.front();
    return absl::FailedPreconditionError(
        absl::StrCat(s.field, " is ", s.now, " but the checkpoint to resume from was made with ",
                     s.then, "; resume with the same value, or start anew with --overwrite"));
  }

 private:
  static std::string Shown(absl::string_view text) {
    return text.empty() ? "none" : ShownText(text);
  }
  static std::string Shown(uint64_t number) { return absl::StrCat(number); }

  struct Setting {
    std::string field, now, then;
  };
  std::vector<Setting> all_;
};

std::string Answer(bool yes) { return yes ? "true" : "false"; }

template <typename List>
std::string Text(const List& list) {
  return absl::StrCat("[", absl::StrJoin(list, ", "), "]");
}

std::string Quoted(const std::string& delimiter) {
  return absl::StrCat("'", delimiter == "\t" ? "\\t" : delimiter, "'");
}

std::map<std::string, std::string> TablesOfFields(const JobSpec& spec) {
  std::map<std::string, std::string> tables;  // by column
  for (const FieldConfig& f : spec.fields()) {
    if (!f.table().empty()) tables[f.column().empty() ? f.name() : f.column()] = f.table();
  }
  return tables;
}

void CompareData(const JobSpec& now, const JobSpec& then, Settings& settings) {
  const DataSpec &data = now.data(), &was = then.data();
  settings.Same("spec.data.format", data.format(), was.format());
  if (data.format() == "csv" && was.format() == "csv") {
    settings.Same("spec.data.columns.header", Answer(data.columns().header()),
                  Answer(was.columns().header()));
    settings.Same("spec.data.columns.delimiter", Quoted(data.columns().delimiter()),
                  Quoted(was.columns().delimiter()));
  }
  const ShuffleSpec &order = data.shuffle(), &order_then = was.shuffle();
  settings.Same("spec.data.shuffle.enabled", Answer(order.enabled()), Answer(order_then.enabled()));
  if (order.enabled() && order_then.enabled()) {
    settings.Same("spec.data.shuffle.bufferLines", order.buffer_lines(), order_then.buffer_lines());
  }
}

// Whether keys of some field hash spec.model.hashSeed.
bool UsesSeed(JobSpec spec, uint32_t fields) {
  const uint64_t other = spec.model().hash_seed() + 1;
  const std::vector<SchemaField> as_it_is = SchemaFields(spec, fields);
  spec.mutable_model()->set_hash_seed(other);
  const std::vector<SchemaField> with_another = SchemaFields(spec, fields);
  return !std::equal(
      as_it_is.begin(), as_it_is.end(), with_another.begin(), with_another.end(),
      [](const SchemaField& a, const SchemaField& b) { return a.hash_seed() == b.hash_seed(); });
}

// What the type of the model reads (proto/job/tables/model_tables.h).
void CompareModel(const JobSpec& now, const JobSpec& then, const Manifest& saved,
                  Settings& settings) {
  const ModelSpec &model = now.model(), &was = then.model();
  if (UsesSeed(now, saved.fields()) || UsesSeed(then, saved.fields())) {
    settings.Same("spec.model.hashSeed", model.hash_seed(), was.hash_seed());
  }
  if (!settings.Same("spec.model.type", model.type(), was.type())) return;
  const std::string& type = model.type();
  if (type != "lr" && now.tables().empty() && then.tables().empty()) {
    settings.Same("spec.model.embeddingDim", model.embedding_dim(), was.embedding_dim());
  }
  if (type != "lr" && type != "fm") {
    settings.Same("spec.model.hidden", Text(model.hidden()), Text(was.hidden()));
  }
  if (type == "dlrm" && saved.numeric() > 0) {
    settings.Same("spec.model.bottomHidden", Text(model.bottom_hidden()),
                  Text(was.bottom_hidden()));
  }
  if (type == "dcn_v2") {
    settings.Same("spec.model.crossLayers", model.cross_layers(), was.cross_layers());
    settings.Same("spec.model.crossRank", model.cross_rank(), was.cross_rank());
  }
  if (type == "mmoe") {
    settings.Same("spec.model.experts", model.experts(), was.experts());
    settings.Same("spec.model.expertHidden", Text(model.expert_hidden()),
                  Text(was.expert_hidden()));
  }
  if (type == "shared_bottom" || type == "mmoe") {
    settings.Same("spec.model.towerHidden", Text(model.tower_hidden()), Text(was.tower_hidden()));
  }
  if (type == "din") {
    settings.Same("spec.model.attentionHidden", Text(model.attention_hidden()),
                  Text(was.attention_hidden()));
  }
}

// Optimizer state is read as its own optimizer wrote it: adagrad's sums and momentum's velocities
// have one size, and nothing else in common. Of easgd nothing is saved but the centre.
void CompareOptimizers(const JobSpec& now, const JobSpec& then, Settings& settings) {
  if (now.training().mode() == "easgd" && then.training().mode() == "easgd") return;
  const OptimizersSpec &o = now.optimizer(), &was = then.optimizer();
  if (now.tables().empty() && then.tables().empty()) {
    settings.Same("spec.optimizer.sparse.type", o.sparse().type(), was.sparse().type());
    const std::string& type = now.model().type();
    if (type == "fm" || type == "wide_deep" || type == "deepfm") {
      const auto linear = [](const OptimizersSpec& of) {
        return of.has_linear() ? of.linear().type() : of.sparse().type();
      };
      settings.Same("spec.optimizer.linear.type", linear(o), linear(was));
    }
  }
  settings.Same("spec.optimizer.dense.type", o.dense().type(), was.dense().type());
}

void CompareTraining(const JobSpec& now, const JobSpec& then, Settings& settings) {
  const TrainingSpec &training = now.training(), &was = then.training();
  settings.Same("spec.storage.partitions", now.storage().partitions(), then.storage().partitions());
  if (settings.Same("spec.training.mode", training.mode(), was.mode())) {
    if (training.mode() == "downpour") {
      settings.Same("spec.training.nPush", training.n_push(), was.n_push());
    }
    if (training.mode() == "easgd") {
      settings.Same("spec.training.tau", training.tau(), was.tau());
    }
  }
  settings.Same("spec.training.lanes", training.lanes(), was.lanes());
  settings.Same("spec.training.batchSize", training.batch_size(), was.batch_size());
  settings.Same("spec.training.seed", training.seed(), was.seed());
}

// `now` with what settings tell taken from the checkpoint: what its schema has beside is told by
// the schema.
JobSpec WithSettingsOf(const JobSpec& then, JobSpec now) {
  const ModelSpec model = now.model();
  const OptimizersSpec optimizers = now.optimizer();
  *now.mutable_model() = then.model();
  *now.mutable_optimizer() = then.optimizer();
  if (now.tables().empty() != then.tables().empty()) {  // of one of the two they say the table
    now.mutable_model()->set_embedding_dim(model.embedding_dim());
    *now.mutable_optimizer()->mutable_sparse() = optimizers.sparse();
    if (optimizers.has_linear()) *now.mutable_optimizer()->mutable_linear() = optimizers.linear();
  }
  now.mutable_training()->set_mode(then.training().mode());
  now.mutable_storage()->set_partitions(then.storage().partitions());
  return now;
}

// `now` with the checkpoint's labels, which rows and tensors have their shapes of.
JobSpec ForTables(JobSpec now, const JobSpec& then) {
  *now.mutable_labels() = then.labels();
  return now;
}

// The same with the checkpoint's tables, and with its fields where those lie in other tables.
JobSpec ForTensors(JobSpec now, const JobSpec& then) {
  now = ForTables(std::move(now), then);
  const bool tables = !now.tables().empty() || !then.tables().empty();
  if (tables && TablesOfFields(now) != TablesOfFields(then)) *now.mutable_fields() = then.fields();
  *now.mutable_tables() = then.tables();
  now.mutable_model()->set_embedding_dim(then.model().embedding_dim());  // where there are none
  return now;
}

// What the schemas differ in, a line each; `settings` do not tell it.
absl::StatusOr<std::vector<std::string>> PartDifferences(const JobSpec& now,
                                                         const Manifest& manifest,
                                                         const Settings& settings) {
  const JobSpec& then = manifest.job().spec();
  JobSpec own = settings.empty() ? now : WithSettingsOf(then, now);
  auto made = ExpectedSchema(own, manifest);
  if (!made.ok() && !settings.empty()) made = ExpectedSchema(own = now, manifest);
  if (!made.ok()) return made.status();
  SchemaByParts parts{.own = *made, .tables = *made, .tensors = std::nullopt};
  if (auto tables = ExpectedSchema(ForTables(own, then), manifest); tables.ok()) {
    parts.tables = *std::move(tables);
  }
  if (auto tensors = ExpectedSchema(ForTensors(own, then), manifest); tensors.ok()) {
    parts.tensors = *std::move(tensors);
  }
  return ResumeDifferences(MapByParts(SavedSchema(manifest), parts));
}

}  // namespace

absl::Status CheckResumable(const TrainingJob& job, const Manifest& saved) {
  const JobSpec &now = job.spec(), &then = saved.job().spec();
  Settings settings;
  CompareData(now, then, settings);
  CompareModel(now, then, saved, settings);
  settings.Same("spec.sampleWeight", now.sample_weight(), then.sample_weight());
  CompareOptimizers(now, then, settings);
  CompareTraining(now, then, settings);
  std::vector<std::string> others;
  // Data of another format have other fields, and no field is the same one.
  if (now.data().format() == then.data().format()) {
    auto found = PartDifferences(now, saved, settings);
    if (!found.ok() && settings.empty()) return found.status();
    if (found.ok()) others = *std::move(found);
  }
  std::vector<std::string> lines = settings.Lines();
  if (lines.empty()) return OtherModel(std::move(others));
  if (lines.size() == 1 && others.empty()) return settings.First();
  lines.insert(lines.end(), others.begin(), others.end());
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoint to resume from was made by another job; resume with what it had, ",
      kOtherWays, ":", Indented(FirstLines(std::move(lines)))));
}

}  // namespace strata::scheduler
