#include "proto/core/job_spec.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata {
namespace {

using Choices = std::initializer_list<absl::string_view>;

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// `value` must be one of `choices`.
absl::Status CheckChoice(absl::string_view field, absl::string_view value, Choices choices) {
  for (absl::string_view c : choices) {
    if (value == c) return absl::OkStatus();
  }
  if (value.empty()) {
    return Bad(field, absl::StrCat("is missing; give one of: ", absl::StrJoin(choices, ", ")));
  }
  return Bad(field, absl::StrCat("'", value, "' is not one of: ", absl::StrJoin(choices, ", ")));
}

absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Bad(field,
             absl::StrCat(value, " is outside the limits; give a number from ", low, " to ", high));
}

// `value` must be finite, above `low` (or equal, when `low_allowed`) and below `high`.
enum class Low { kAllowed, kNotAllowed };
absl::Status CheckReal(absl::string_view field, float value, float low, Low low_allowed,
                       float high) {
  const bool above = low_allowed == Low::kAllowed ? value >= low : value > low;
  if (std::isfinite(value) && above && value < high) return absl::OkStatus();
  return Bad(field, absl::StrCat(value, " is outside the limits; give a number ",
                                 low_allowed == Low::kAllowed ? "of at least " : "above ", low,
                                 " and below ", high));
}

#define STRATA_RETURN_IF_BAD(expression)               \
  do {                                                 \
    absl::Status status_of_check = (expression);       \
    if (!status_of_check.ok()) return status_of_check; \
  } while (false)

template <typename Strings>
absl::Status CheckNoneEmpty(absl::string_view field, const Strings& values) {
  for (int i = 0; i < values.size(); ++i) {
    if (values[i].empty()) return Bad(absl::StrCat(field, "[", i, "]"), "is empty; name a file");
  }
  return absl::OkStatus();
}

absl::Status CheckHead(const TrainingJob& job) {
  STRATA_RETURN_IF_BAD(CheckChoice("apiVersion", job.api_version(), {"strata/v1"}));
  STRATA_RETURN_IF_BAD(CheckChoice("kind", job.kind(), {"TrainingJob"}));
  const std::string& name = job.metadata().name();
  if (name.empty()) return Bad("metadata.name", "is missing; name the job");
  if (name.size() > 63) {
    return Bad("metadata.name",
               absl::StrCat("has ", name.size(), " characters; at most 63 are allowed"));
  }
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') {
      return Bad("metadata.name",
                 absl::StrCat("'", name, "' may hold letters, digits, '-', '_' and '.' only"));
    }
  }
  if (name[0] == '-' || name[0] == '.') {
    return Bad("metadata.name", absl::StrCat("'", name, "' must not start with '-' or '.'"));
  }
  return absl::OkStatus();
}

bool IsPosition(absl::string_view column) {
  uint32_t position;
  return absl::SimpleAtoi(column, &position);
}

// A column that the file cannot have, or that is in two lists.
absl::Status CheckColumn(const ColumnsSpec& columns, const std::string& field,
                         const std::string& column, std::set<std::string>& seen) {
  if (column.empty()) return Bad(field, "is empty; name a column");
  if (!columns.header() && !IsPosition(column)) {
    return Bad(field,
               absl::StrCat("'", column,
                            "' is not a position; without a header columns are numbered from "
                            "0"));
  }
  if (!seen.insert(column).second) {
    return Bad(field, absl::StrCat("'", column, "' is named twice; a column has one use"));
  }
  return absl::OkStatus();
}

absl::Status ResolveColumns(ColumnsSpec& columns) {
  const std::string at = "spec.data.columns.";
  if (!columns.has_header()) columns.set_header(true);
  if (columns.delimiter().empty()) columns.set_delimiter(",");
  if (columns.delimiter() == "\\t") columns.set_delimiter("\t");
  const std::string& d = columns.delimiter();
  if (d.size() != 1 || d == "\n" || d == "\r" || d == "\"" || d[0] == '\0') {
    return Bad(at + "delimiter", absl::StrCat("'", d, "' must be one character, or \"\\t\""));
  }
  std::set<std::string> seen;
  if (columns.label().empty()) return Bad(at + "label", "is missing; name the label's column");
  STRATA_RETURN_IF_BAD(CheckColumn(columns, at + "label", columns.label(), seen));
  const std::pair<const char*, const google::protobuf::RepeatedPtrField<std::string>*> lists[] = {
      {"numeric", &columns.numeric()},
      {"categorical", &columns.categorical()},
      {"ignored", &columns.ignored()}};
  for (const auto& [list, names] : lists) {
    if (names == &columns.ignored() && names->size() == 1 && names->Get(0) == "*") continue;
    for (int i = 0; i < names->size(); ++i) {
      const std::string field = absl::StrCat(at, list, "[", i, "]");
      STRATA_RETURN_IF_BAD(CheckColumn(columns, field, names->Get(i), seen));
    }
  }
  if (columns.numeric().empty() && columns.categorical().empty()) {
    return Bad("spec.data.columns", "names no feature; fill numeric or categorical");
  }
  return absl::OkStatus();
}

absl::Status ResolveData(DataSpec& data) {
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.data.format", data.format(), {"criteo", "libfm", "libsvm", "csv"}));
  if (data.train().empty()) return Bad("spec.data.train", "is missing; name the files to train on");
  STRATA_RETURN_IF_BAD(CheckNoneEmpty("spec.data.train", data.train()));
  STRATA_RETURN_IF_BAD(CheckNoneEmpty("spec.data.eval", data.eval()));
  if (data.format() == "csv") {
    if (!data.has_columns()) {
      return Bad("spec.data.columns", "is missing; format csv needs label, numeric, categorical");
    }
    STRATA_RETURN_IF_BAD(ResolveColumns(*data.mutable_columns()));
  } else if (data.has_columns()) {
    return Bad("spec.data.columns", absl::StrCat("applies to format csv only, and the format is ",
                                                 data.format(), "; remove it"));
  }
  if (data.format() == "criteo") {
    if (data.integer_features().empty()) data.set_integer_features("dense");
    STRATA_RETURN_IF_BAD(
        CheckChoice("spec.data.integerFeatures", data.integer_features(), {"dense", "bucket"}));
  } else if (!data.integer_features().empty()) {
    return Bad("spec.data.integerFeatures",
               absl::StrCat("applies to format criteo only, and the format is ", data.format(),
                            "; remove it"));
  }
  ShuffleSpec& shuffle = *data.mutable_shuffle();
  if (!shuffle.has_enabled()) shuffle.set_enabled(true);
  if (!shuffle.has_buffer_lines()) shuffle.set_buffer_lines(16384);
  STRATA_RETURN_IF_BAD(
      CheckRange("spec.data.shuffle.bufferLines", shuffle.buffer_lines(), 1, 1u << 24));
  if (!data.has_max_bad_lines()) data.set_max_bad_lines(0);
  return absl::OkStatus();
}

absl::Status ResolveModel(ModelSpec& model) {
  STRATA_RETURN_IF_BAD(CheckChoice("spec.model.type", model.type(), {"lr", "fm", "deepfm"}));
  if (!model.has_embedding_dim()) model.set_embedding_dim(16);
  STRATA_RETURN_IF_BAD(CheckRange("spec.model.embeddingDim", model.embedding_dim(), 1, 4096));
  if (model.type() == "deepfm" && model.hidden().empty()) {
    for (int i = 0; i < 3; ++i) model.add_hidden(400);
  }
  STRATA_RETURN_IF_BAD(CheckRange("spec.model.hidden (layers)", model.hidden().size(), 0, 32));
  for (int i = 0; i < model.hidden().size(); ++i) {
    STRATA_RETURN_IF_BAD(
        CheckRange(absl::StrCat("spec.model.hidden[", i, "]"), model.hidden(i), 1, 16384));
  }
  if (!model.has_hash_seed()) model.set_hash_seed(0);
  if (!model.has_init_scale()) model.set_init_scale(0.01f);
  return CheckReal("spec.model.initScale", model.init_scale(), 0.0f, Low::kNotAllowed, 100.0f);
}

absl::Status ResolveOptimizer(const std::string& at, absl::string_view default_type,
                              OptimizerConfig& o) {
  if (o.type().empty()) o.set_type(std::string(default_type));
  STRATA_RETURN_IF_BAD(CheckChoice(at + ".type", o.type(), {"sgd", "adagrad", "adam"}));
  const bool adagrad = o.type() == "adagrad", adam = o.type() == "adam";
  if (!o.has_learning_rate()) o.set_learning_rate(adagrad ? 0.05f : adam ? 0.001f : 0.01f);
  STRATA_RETURN_IF_BAD(
      CheckReal(at + ".learningRate", o.learning_rate(), 0.0f, Low::kNotAllowed, 1e6f));
  if (adagrad || adam) {
    if (!o.has_epsilon()) o.set_epsilon(adagrad ? 1e-10f : 1e-8f);
    STRATA_RETURN_IF_BAD(CheckReal(at + ".epsilon", o.epsilon(), 0.0f, Low::kNotAllowed, 1e6f));
  }
  if (adagrad) {
    if (!o.has_initial_accumulator()) o.set_initial_accumulator(0.0f);
    STRATA_RETURN_IF_BAD(
        CheckReal(at + ".initialAccumulator", o.initial_accumulator(), 0.0f, Low::kAllowed, 1e6f));
  }
  if (adam) {
    if (!o.has_beta1()) o.set_beta1(0.9f);
    if (!o.has_beta2()) o.set_beta2(0.999f);
    STRATA_RETURN_IF_BAD(CheckReal(at + ".beta1", o.beta1(), 0.0f, Low::kAllowed, 1.0f));
    STRATA_RETURN_IF_BAD(CheckReal(at + ".beta2", o.beta2(), 0.0f, Low::kAllowed, 1.0f));
  }
  return absl::OkStatus();
}

absl::Status ResolveTraining(TrainingSpec& t) {
  if (t.mode().empty()) t.set_mode("bsp");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.training.mode", t.mode(), {"bsp", "async"}));
  if (!t.has_lanes()) t.set_lanes(8);
  if (!t.has_batch_size()) t.set_batch_size(512);
  if (!t.has_epochs()) t.set_epochs(1);
  if (!t.has_seed()) t.set_seed(1);
  if (!t.has_pipeline_depth()) t.set_pipeline_depth(4);
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.lanes", t.lanes(), 1, 4096));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.batchSize", t.batch_size(), 1, 1u << 20));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.epochs", t.epochs(), 1, 1000000));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.pipelineDepth", t.pipeline_depth(), 1, 64));
  if (t.has_threads()) {
    STRATA_RETURN_IF_BAD(CheckRange("spec.training.threads", t.threads(), 1, 1024));
  }
  return absl::OkStatus();
}

absl::Status ResolveEvaluation(const DataSpec& data, const TrainingSpec& training,
                               EvaluationSpec& e) {
  if (!e.has_every_steps()) e.set_every_steps(0);
  if (!e.has_patience()) e.set_patience(0);
  if (e.every_steps() > 0 && data.eval().empty()) {
    return Bad("spec.evaluation.everySteps",
               absl::StrCat(e.every_steps(), " needs held-out files; name them in spec.data.eval"));
  }
  if (e.patience() > 0 && e.every_steps() == 0) {
    return Bad("spec.evaluation.patience",
               absl::StrCat(e.patience(), " counts evaluations; set spec.evaluation.everySteps"));
  }
  if (e.patience() > 0 && training.mode() != "bsp") {
    return Bad("spec.evaluation.patience",
               absl::StrCat(e.patience(), " needs spec.training.mode bsp: in ", training.mode(),
                            " no evaluation belongs to one state of the model that could be kept"));
  }
  return absl::OkStatus();
}

absl::Status ResolveReplicas(const TrainingSpec& training, ReplicasSpec& r) {
  if (!r.has_servers()) r.set_servers(1);
  if (!r.has_workers()) r.set_workers(1);
  STRATA_RETURN_IF_BAD(CheckRange("spec.replicas.servers", r.servers(), 1, 1024));
  STRATA_RETURN_IF_BAD(CheckRange("spec.replicas.workers", r.workers(), 1, 4096));
  if (r.workers() > training.lanes()) {
    return Bad("spec.replicas.workers",
               absl::StrCat(r.workers(), " is more than spec.training.lanes, ", training.lanes(),
                            "; a worker hosts at least one lane: use fewer workers or more lanes"));
  }
  return absl::OkStatus();
}

absl::Status CheckBytes(absl::string_view field, const std::string& text, uint64_t least) {
  absl::StatusOr<uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return Bad(field, bytes.status().message());
  return CheckRange(field, *bytes, least, uint64_t{1} << 60);
}

absl::Status ResolveStorage(const ReplicasSpec& replicas, StorageSpec& s) {
  if (s.dram_bytes_per_server().empty()) s.set_dram_bytes_per_server("0");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.dramBytesPerServer", s.dram_bytes_per_server(), 0));
  if (s.log_bytes_per_server().empty()) s.set_log_bytes_per_server("1GiB");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.logBytesPerServer", s.log_bytes_per_server(), 1));
  if (s.durability().empty()) s.set_durability("logged");
  if (s.durability() == "synced" || s.durability() == "replicated") {
    return Bad("spec.storage.durability",
               absl::StrCat("'", s.durability(),
                            "' is not available in this version; give one of: memory, logged"));
  }
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.storage.durability", s.durability(), {"memory", "logged"}));
  if (!s.has_partitions()) s.set_partitions(4096);
  STRATA_RETURN_IF_BAD(CheckRange("spec.storage.partitions", s.partitions(), 1, 1u << 20));
  if ((s.partitions() & (s.partitions() - 1)) != 0) {
    return Bad("spec.storage.partitions", absl::StrCat(s.partitions(), " is not a power of two"));
  }
  const uint64_t per_server = s.has_shards_per_server() ? s.shards_per_server() : 1;
  STRATA_RETURN_IF_BAD(CheckRange("spec.storage.shardsPerServer", per_server, 1, 1u << 20));
  if (per_server * replicas.servers() > s.partitions()) {
    return Bad("spec.storage.partitions",
               absl::StrCat(s.partitions(), " is less than the ", per_server * replicas.servers(),
                            " shards of ", replicas.servers(),
                            " servers; a shard is at least one partition"));
  }
  return absl::OkStatus();
}

absl::Status ResolveFiles(const DataSpec& data, CheckpointSpec& c, OutputSpec& output) {
  if (!c.has_every_steps()) c.set_every_steps(0);
  if (!c.has_keep()) c.set_keep(3);
  STRATA_RETURN_IF_BAD(CheckRange("spec.checkpoint.keep", c.keep(), 1, 1000000));
  if (c.every_steps() > 0 && c.directory().empty()) {
    return Bad("spec.checkpoint.everySteps",
               absl::StrCat(c.every_steps(), " needs a place; set spec.checkpoint.directory"));
  }
  if (!output.predictions().empty() && data.eval().empty()) {
    return Bad("spec.output.predictions", "needs held-out files; name them in spec.data.eval");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveJob(TrainingJob& job) {
  STRATA_RETURN_IF_BAD(CheckHead(job));
  JobSpec& spec = *job.mutable_spec();
  STRATA_RETURN_IF_BAD(ResolveData(*spec.mutable_data()));
  STRATA_RETURN_IF_BAD(ResolveModel(*spec.mutable_model()));
  OptimizersSpec& optimizer = *spec.mutable_optimizer();
  STRATA_RETURN_IF_BAD(
      ResolveOptimizer("spec.optimizer.sparse", "adagrad", *optimizer.mutable_sparse()));
  STRATA_RETURN_IF_BAD(
      ResolveOptimizer("spec.optimizer.dense", "adam", *optimizer.mutable_dense()));
  STRATA_RETURN_IF_BAD(ResolveTraining(*spec.mutable_training()));
  STRATA_RETURN_IF_BAD(ResolveEvaluation(spec.data(), spec.training(), *spec.mutable_evaluation()));
  STRATA_RETURN_IF_BAD(ResolveReplicas(spec.training(), *spec.mutable_replicas()));
  STRATA_RETURN_IF_BAD(ResolveStorage(spec.replicas(), *spec.mutable_storage()));
  return ResolveFiles(spec.data(), *spec.mutable_checkpoint(), *spec.mutable_output());
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is not a size; write bytes as in \"1048576\", \"4MiB\", \"1.5GiB\" or \"2GB\""));
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  using Wide = unsigned __int128;
  constexpr Wide kLimit = std::numeric_limits<uint64_t>::max();
  Wide number = 0, scale = 1;  // the value is number / scale
  bool point = false, digits = false;
  while (!rest.empty() && (absl::ascii_isdigit(rest[0]) || (rest[0] == '.' && digits && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else {
      number = number * 10 + static_cast<unsigned>(rest[0] - '0');
      if (point) scale *= 10;
      digits = true;
      if (number > kLimit || scale > kLimit) return bad;
    }
    rest.remove_prefix(1);
  }
  if (!digits || (point && scale == 1)) return bad;
  rest = absl::StripAsciiWhitespace(rest);
  Wide unit = 1;
  if (!rest.empty() && rest != "B") {
    const absl::string_view letters = "KMGTP";
    const size_t power = letters.find(rest[0]);
    const absl::string_view tail = rest.substr(1);
    if (power == absl::string_view::npos || (tail != "B" && tail != "iB")) return bad;
    for (size_t i = 0; i <= power; ++i) unit *= tail == "iB" ? 1024 : 1000;
  }
  const Wide bytes = number * unit / scale;
  if (bytes > kLimit) return bad;
  return static_cast<uint64_t>(bytes);
}

}  // namespace strata
