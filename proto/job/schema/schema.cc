#include "proto/job/schema/schema.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/job/fields/data_fields.h"
#include "proto/job/schema/schema_meaning.h"
#include "proto/job/schema/schema_names.h"
#include "proto/job/schema/schema_renaming.h"

namespace strata {
namespace {

constexpr size_t kMostColumns = 20;  // that a warning names

std::string InitializerText(const InitializerSpec& initializer) {
  switch (initializer.type) {
    case InitializerType::kZero:
      return "zero";
    case InitializerType::kUniform:
      return absl::StrCat("uniform(-", initializer.scale, ", ", initializer.scale, ")");
    case InitializerType::kNormal:
      return absl::StrCat("normal(0, ", initializer.scale, ")");
  }
  return "";
}

const char* TypeName(OptimizerType type) {
  switch (type) {
    case OptimizerType::kSgd:
      return "sgd";
    case OptimizerType::kAdagrad:
      return "adagrad";
    case OptimizerType::kAdam:
      return "adam";
    case OptimizerType::kMomentum:
      return "momentum";
    case OptimizerType::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case OptimizerType::kFtrl:
      return "ftrl";
    case OptimizerType::kAdd:
      return "add";
  }
  return "";
}

ScheduleSpec ScheduleOf(const RateSchedule& schedule) {
  ScheduleSpec out;
  out.set_warmup_steps(schedule.warmup_steps);
  out.set_type("constant");
  if (schedule.type == ScheduleType::kConstant) return out;
  out.set_decay_steps(schedule.decay_steps);
  if (schedule.type == ScheduleType::kStep) {
    out.set_type("step");
    out.set_gamma(schedule.gamma);
    return out;
  }
  out.set_type(schedule.type == ScheduleType::kPoly ? "poly" : "cosine");
  if (schedule.type == ScheduleType::kPoly) out.set_power(schedule.power);
  out.set_final_factor(schedule.final_factor);
  return out;
}

// Fields of other types stay out.
OptimizerConfig ConfigOf(const OptimizerSpec& o) {
  OptimizerConfig out;
  out.set_type(TypeName(o.type));
  if (o.type == OptimizerType::kAdd) return out;
  out.set_learning_rate(o.learning_rate);
  const bool sums = o.type == OptimizerType::kAdagrad || o.type == OptimizerType::kRowwiseAdagrad;
  if (sums || o.type == OptimizerType::kAdam) out.set_epsilon(o.epsilon);
  if (sums) out.set_initial_accumulator(o.initial_accumulator);
  if (o.type == OptimizerType::kAdam) {
    out.set_beta1(o.beta1);
    out.set_beta2(o.beta2);
  }
  if (o.type == OptimizerType::kMomentum) {
    out.set_momentum(o.momentum);
    out.set_nesterov(o.nesterov);
  }
  if (o.type == OptimizerType::kFtrl) {
    out.set_beta(o.beta);
    out.set_l1(o.l1);
    out.set_l2(o.l2);
  } else {
    out.set_weight_decay(o.weight_decay);
  }
  out.set_clip_norm(o.clip_norm);
  out.set_clip_value(o.clip_value);
  *out.mutable_schedule() = ScheduleOf(o.schedule);
  return out;
}

template <typename Message>
void SetOptimizer(const OptimizerSpec& optimizer, Message* out) {
  *out->mutable_optimizer() = ConfigOf(optimizer);
  for (std::string& name : OptimizerStateNames(optimizer.type)) out->add_state(std::move(name));
}

SchemaTable TableOf(const TableSpec& table) {
  SchemaTable out;
  out.set_name(table.name);
  out.set_table(table.id.value);
  out.set_scored(table.life_cycle.scored());
  for (const SegmentSpec& segment : table.segments) {
    SchemaSegment* s = out.add_segments();
    s->set_name(segment.name);
    s->set_dim(segment.dim);
    s->set_initializer(InitializerText(segment.initializer));
    SetOptimizer(segment.optimizer, s);
  }
  return out;
}

// Whether a tensor's weights stand for single fields, in their order.
bool GoesByFields(ModelType type, absl::string_view tensor) {
  if (absl::StartsWith(tensor, "numeric_") || tensor == "bottom_0_weight") return true;
  if (tensor == "layer_0_weight") return true;
  if (absl::StartsWith(tensor, "expert_")) return absl::EndsWith(tensor, "_0_weight");
  if (absl::StartsWith(tensor, "gate_")) return absl::EndsWith(tensor, "_weight");
  return type == ModelType::kDcnV2 &&
         (absl::StartsWith(tensor, "cross_") || tensor == "output_weight");
}

SchemaTensor TensorOf(const ModelTables& model, size_t number) {
  const TensorSpec& tensor = model.tensor(number);
  SchemaTensor out;
  out.set_name(tensor.name);
  for (const uint64_t n : TensorShape(model, number)) out.add_shape(n);
  out.set_first_row(tensor.first.value);
  out.set_rows(tensor.Rows(ModelTables::kDenseRowDim));
  out.set_initializer(InitializerText(tensor.initializer));
  out.set_by_fields(GoesByFields(model.type, tensor.name));
  SetOptimizer(model.tables[1].segments[0].optimizer, &out);
  return out;
}

constexpr char kByColumn[] = "column", kByPlace[] = "place", kByTable[] = "table",
               kByValue[] = "value";

bool IsCriteoData(const DataSpec& data) {
  return data.format() == "criteo" || data.format() == "criteo_csv";
}

// As SchemaField.keys says.
const char* KeysOf(const FieldConfig& config, const JobSpec& spec) {
  if (config.table().empty()) return "";
  if (IsCriteoData(spec.data())) return kByPlace;
  if (spec.data().format() != "csv") return kByValue;
  return spec::KeysHashTable(spec) ? kByTable : kByColumn;
}

SchemaField FieldOf(const FieldConfig& config, const JobSpec& spec) {
  SchemaField out;
  out.set_name(config.name());
  out.set_column(config.column().empty() ? config.name() : config.column());
  out.set_kind(config.kind());
  out.set_table(config.table());
  out.set_keys(KeysOf(config, spec));
  if (!config.table().empty() && out.keys() != kByValue) {
    out.set_hash_seed(config.has_hash_seed() ? config.hash_seed() : spec.model().hash_seed());
  }
  out.set_pooling(config.pooling());
  if (config.has_transform()) *out.mutable_transform() = config.transform();
  out.set_out_of_vocabulary(config.vocabulary().out_of_vocabulary());
  out.set_max_length(config.max_length());
  out.set_truncate(config.truncate());
  out.set_separator(config.separator());
  out.set_weight_separator(config.weight_separator());
  if (config.has_default_value()) out.set_default_value(config.default_value());
  return out;
}

// What the forms of spec.data say else than spec.fields would.
void AsFormatSays(const JobSpec& spec, SchemaField& f) {
  // Data without fields have one table, whatever its name.
  const auto names_it = [&f](const TableConfig& table) { return table.name() == f.table(); };
  if (!f.table().empty() && !spec.tables().empty() &&
      std::none_of(spec.tables().begin(), spec.tables().end(), names_it)) {
    f.set_table(spec.tables(0).name());
  }
  const std::string& format = spec.data().format();
  if (format == "csv") {  // columns are fields' names, whatever characters they have
    f.set_name(f.column());
    if (f.kind() != "multiValued") return;
    if (f.pooling().empty()) f.set_pooling("sum");
    if (f.separator().empty()) f.set_separator("|");
    return;
  }
  if (IsCriteoData(spec.data()) && spec.data().integer_features() == "bucket" &&
      absl::StartsWith(f.column(), "I")) {
    f.mutable_transform()->set_type("bucket");
  }
  if (format == "libfm" || format == "libsvm") {  // features are the keys themselves
    f.set_column(f.name());
    f.clear_pooling();
  }
}

// Whether a line without a value of it has a row: that of an empty one.
bool IsMissingCategory(const SchemaField& field) {
  return field.kind() == "multiValued" && field.has_default_value() &&
         field.default_value().empty();
}

// `schema`, which was written down, as it is written today: with the empty defaults that it leaves
// out and `fields` have, and with today's names of tensors. `rename`: from its names to theirs.
Schema AsToday(const std::vector<SchemaField>& fields,
               const std::map<std::string, std::string>& rename, Schema schema) {
  const Renaming names(fields, rename);
  std::set<std::string> missing_is_category;
  for (const SchemaField& field : fields) {
    if (IsMissingCategory(field)) missing_is_category.insert(field.name());
  }
  for (SchemaField& field : *schema.mutable_fields()) {
    const bool may = field.kind() == "multiValued" && !field.has_default_value();
    if (may && missing_is_category.contains(names.Now(field.name()))) field.set_default_value("");
  }
  RenameTensors(schema);
  return schema;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

google::protobuf::RepeatedPtrField<SchemaLabel> SchemaLabels(const JobSpec& spec) {
  google::protobuf::RepeatedPtrField<SchemaLabel> labels;
  for (const LabelConfig& config : spec.labels()) {
    SchemaLabel* label = labels.Add();
    label->set_name(config.name());
    label->set_column(config.column().empty() ? config.name() : config.column());
    label->set_kind(config.kind());
    label->set_loss(config.loss());
    label->set_weight(config.has_weight() ? config.weight() : 1.0f);
    label->set_delta(config.delta());
    if (config.has_mean()) label->set_mean(config.mean());
  }
  if (!labels.empty()) return labels;
  SchemaLabel* label = labels.Add();
  label->set_name(kUnnamedLabel);
  if (spec.data().format() == "csv") label->set_column(spec.data().columns().label());
  label->set_kind("binary");
  label->set_loss("logloss");
  label->set_weight(1.0f);
  return labels;
}

std::vector<SchemaField> SchemaFields(const JobSpec& spec, uint32_t fields) {
  const bool given = spec.data().format() == "csv" && !spec.fields().empty();
  std::vector<SchemaField> out;
  for (const FieldConfig& config : spec::FieldsOfJob(spec, fields)) {
    out.push_back(FieldOf(config, spec));
    if (!given) AsFormatSays(spec, out.back());
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const SchemaField& f) { return !f.table().empty(); });
  return out;
}

std::optional<FieldCounts> CountFields(const JobSpec& spec) {
  if (spec.data().format() != "csv" && !IsCriteoData(spec.data())) return std::nullopt;
  FieldCounts counts;
  for (const SchemaField& field : SchemaFields(spec, 0)) {
    ++(field.table().empty() ? counts.numeric : counts.fields);
  }
  return counts;
}

std::string KeysByPosition(const JobSpec& spec) {
  if (spec.data().format() != "csv") return "";
  std::vector<std::string> columns;
  for (const SchemaField& field : SchemaFields(spec, 0)) {
    if (field.keys() == kByColumn && IsNumber(field.column())) columns.push_back(field.column());
  }
  if (columns.empty()) return "";
  const bool one = columns.size() == 1;
  if (const size_t n = columns.size(); n > kMostColumns) {
    columns.resize(kMostColumns);
    columns.push_back(absl::StrCat("... and ", n - kMostColumns, " more"));
  }
  const std::string of = absl::StrCat(spec.fields().empty() ? "spec.data.columns" : "spec.fields",
                                      ": the categories of column", one ? " " : "s ",
                                      absl::StrJoin(columns, ", "), " are hashed with ");
  if (!spec.data().columns().header()) {
    return absl::StrCat(of,
                        "the column's position, as it has no name here: a file whose columns lie "
                        "in another order means other rows; name columns by a header "
                        "(spec.data.columns.header: true)");
  }
  return absl::StrCat(of,
                      one ? "this number, which is a position where the header has no column of "
                            "this name"
                          : "these numbers, which are positions where the header has no columns "
                            "of these names",
                      ": a file whose columns lie in another order means other rows then; give "
                      "names of the header");
}

std::vector<uint64_t> TensorShape(const ModelTables& tables, size_t number) {
  const TensorSpec& tensor = tables.tensor(number);
  uint64_t columns = 0;
  absl::string_view stem = tensor.name;
  if (tensor.name == "numeric_embedding") columns = tables.embedding_dim;
  const size_t tasks = tables.task_count();
  if (tensor.name == "interaction_weight" && tasks > 1) columns = tasks;
  if (absl::ConsumeSuffix(&stem, "_weight") ||
      (absl::StartsWith(stem, "cross_") && absl::ConsumeSuffix(&stem, "_u"))) {
    // A layer's biases come behind its weights (model_tables.h).
    const bool is_last = number + 1 == tables.tensor_count();
    const TensorSpec* next = is_last ? nullptr : &tables.tensor(number + 1);
    if (next != nullptr && next->name == absl::StrCat(stem, "_bias")) columns = next->elements;
  } else if (absl::StartsWith(stem, "cross_") && absl::EndsWith(stem, "_v")) {
    columns = tables.cross_rank;
  }
  if (columns == 0 || tensor.elements % columns != 0) return {tensor.elements};
  return {tensor.elements / columns, columns};
}

std::vector<std::string> OptimizerStateNames(OptimizerType type) {
  switch (type) {
    case OptimizerType::kAdagrad:
    case OptimizerType::kRowwiseAdagrad:
      return {"accumulator"};
    case OptimizerType::kAdam:
      return {"m", "v"};
    case OptimizerType::kMomentum:
      return {"velocity"};
    case OptimizerType::kFtrl:
      return {"z", "n"};
    case OptimizerType::kSgd:
    case OptimizerType::kAdd:
      break;
  }
  return {};
}

Schema SavedSchema(const Manifest& manifest) {
  return AsToday(SchemaFields(manifest.job().spec(), manifest.fields()), {}, manifest.schema());
}

Schema StoredSchema(const Schema& stored, const JobSpec& job,
                    const std::map<std::string, std::string>& rename) {
  return AsToday(SchemaFields(job, 0), rename, stored);
}

Schema MakeSchema(const JobSpec& spec, const ModelTables& model,
                  absl::string_view data_fingerprint) {
  Schema schema;
  schema.set_model(spec.model().type());
  for (const TableSpec& table : model.tables) {
    if (table.kind == TableKind::kHashed) *schema.add_tables() = TableOf(table);
  }
  for (size_t i = 0; i < model.tensor_count(); ++i) *schema.add_tensors() = TensorOf(model, i);
  for (SchemaField& field : SchemaFields(spec, model.fields)) {
    *schema.add_fields() = std::move(field);
  }
  *schema.mutable_labels() = SchemaLabels(spec);
  schema.set_data_fingerprint(std::string(data_fingerprint));
  return schema;
}

namespace {

// Whether shapes of tensors follow from how many fields an example has: without layers none does.
bool HasLayers(ModelType type) { return type != ModelType::kLr && type != ModelType::kFm; }

// Those that the job names, by number: the data may have others.
std::vector<SchemaField> NamedLibffmFields(const JobSpec& spec) {
  std::map<uint32_t, SchemaField> fields;
  for (const FieldConfig& config : spec.fields()) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(config.column(), &number)) continue;
    FieldConfig field = spec::LibffmField(number);
    field.set_name(config.name());
    field.set_table(config.table());
    AsFormatSays(spec, fields[number] = FieldOf(field, spec));
  }
  std::vector<SchemaField> out;
  for (auto& [number, field] : fields) out.push_back(std::move(field));
  return out;
}

}  // namespace

absl::StatusOr<Schema> DeclaredSchema(const JobSpec& spec) {
  const std::optional<FieldCounts> counts = CountFields(spec);
  // Two fields have a model of any type; of libffm each has a table, where there are any.
  const uint32_t some = std::max(2, spec.fields_size());
  const auto model = counts ? MakeModelTables(spec, counts->fields, counts->numeric)
                            : MakeModelTables(spec, some, 0);
  if (!model.ok()) return model.status();
  Schema schema = MakeSchema(spec, *model);
  if (counts) return schema;
  if (HasLayers(model->type)) schema.clear_tensors();
  if (spec.data().format() != "libffm") return schema;
  schema.clear_fields();
  for (SchemaField& field : NamedLibffmFields(spec)) *schema.add_fields() = std::move(field);
  return schema;
}

}  // namespace strata
