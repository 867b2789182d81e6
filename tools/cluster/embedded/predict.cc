#include "tools/cluster/embedded/predict.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/mxcsr.h"
#include "ops/parallel.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/prediction_names.h"
#include "tools/cluster/checkpoint/folder.h"
#include "tools/cluster/embedded/checkpoint_server.h"
#include "tools/cluster/embedded/score_output.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"
#include "worker/data/files/file_list.h"
#include "worker/data/reading/field_names.h"
#include "worker/data/reading/scored_lines.h"
#include "worker/eval/prediction_text.h"
#include "worker/eval/quality.h"
#include "worker/eval/scorer.h"
#include "worker/models/model_memory.h"
#include "worker/models/models.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

// Where the output lies; "-": standard output. It is not written into the checkpoint.
absl::StatusOr<PredictionsPlace> FindOutput(const PredictOptions& options,
                                            const std::string& checkpoint) {
  if (options.output.empty()) return PredictionsPlace{};
  auto place = PlaceOfOutput("--output", options.output);
  if (!place.ok() || place->device) return place;
  for (const std::string& path : NamesInPredict(place->path)) {
    absl::Status s = CheckOutsideCheckpoint("--output", path, checkpoint);
    if (!s.ok()) return s;
  }
  return place;
}

// The files to score. None of them, and no vocabulary, is what is written to, nor would it be one
// of them the next time.
absl::StatusOr<std::vector<std::string>> FindInputs(const PredictOptions& options,
                                                    const JobSpec& spec,
                                                    const PredictionsPlace& place) {
  if (std::count(options.inputs.begin(), options.inputs.end(), "-") > 1) {
    return absl::InvalidArgumentError(
        "'-', standard input, is named more than once; it can be read once");
  }
  std::vector<WrittenFile> written;
  if (!place.path.empty() && !place.device) {
    for (std::string& name : NamesInPredict(place.path)) {
      written.push_back({"--output", std::move(name)});
    }
  }
  auto inputs = ListFiles("inputs", options.inputs, {.written = written});
  if (!inputs.ok()) return inputs;
  std::vector<std::string> read = *inputs;
  for (const FieldConfig& field : spec.fields()) {
    if (field.has_vocabulary()) read.push_back(field.vocabulary().file());
  }
  for (const WrittenFile& file : written) {
    if (absl::Status s = CheckNoInput(file.field, file.path, read); !s.ok()) return s;
  }
  return inputs;
}

// A file has one list of values: fields of which the model knows others cannot share it.
absl::Status CheckNamed(const JobSpec& spec, const Schema& saved) {
  std::map<std::string, const SchemaField*> known, of_file;
  for (const SchemaField& field : saved.fields()) {
    if (!field.vocabulary().empty()) known[field.name()] = &field;
  }
  for (const FieldConfig& f : spec.fields()) {
    const auto field = known.find(f.name());
    if (!f.has_vocabulary() || field == known.end()) continue;
    const auto [other, is_new] = of_file.emplace(f.vocabulary().file(), field->second);
    if (is_new || other->second->vocabulary() == field->second->vocabulary()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--vocabulary: ", f.vocabulary().file(), " cannot be the vocabulary of field '",
        other->second->name(), "' and of field '", f.name(),
        "', of which the model knows other values; give each its own file"));
  }
  return absl::OkStatus();
}

// Names the files of options.vocabularies in `spec`. `saved`: the checkpoint's schema.
absl::Status NameVocabularies(const PredictOptions& options, const Schema& saved, JobSpec& spec) {
  for (const std::string& named : options.vocabularies) {
    const size_t equals = named.find('=');
    const std::string field = named.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == named.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--vocabulary ", named, " names no file; give FIELD=FILE"));
    }
    bool found = false;
    for (FieldConfig& f : *spec.mutable_fields()) {
      if (f.name() != field || !f.has_vocabulary()) continue;
      f.mutable_vocabulary()->set_file(named.substr(equals + 1));
      found = true;
    }
    if (!found) {
      return absl::InvalidArgumentError(
          absl::StrCat("--vocabulary ", named, ": the job has no field '", field,
                       "' with a vocabulary; `strata checkpoint show` lists its fields"));
    }
  }
  return CheckNamed(spec, saved);
}

absl::StatusOr<std::unique_ptr<ScoredLines>> OpenLines(const PredictOptions& options,
                                                       const JobSpec& spec,
                                                       const Manifest& manifest,
                                                       const PredictionsPlace& place) {
  auto inputs = FindInputs(options, spec, place);
  if (!inputs.ok()) return inputs.status();
  ScoredLinesOptions lines;
  lines.spec = spec;
  lines.shape.set_fields(manifest.fields());
  lines.shape.set_numeric(manifest.numeric());
  lines.shape.set_columns(manifest.columns());
  *lines.shape.mutable_numbered_columns() = manifest.numbered_columns();
  lines.paths = *std::move(inputs);
  lines.vocabularies.known = KnownVocabularies(spec, manifest.schema());
  lines.vocabularies.option = "--vocabulary";
  lines.max_bad_lines = options.max_bad_lines.value_or(spec.data().max_bad_lines());
  if (options.cancelled != nullptr) {
    lines.cancelled = [stop = options.cancelled] { return stop->load(); };
  }
  const bool pipe = lines.paths[0] == "-";
  auto opened = ScoredLines::Make(std::move(lines));
  if (!opened.ok() || pipe) return opened;
  // What is wrong with a file's columns is told before the checkpoint is loaded.
  if (absl::Status s = (*opened)->Start(); !s.ok()) return s;
  return opened;
}

// A label may have the name that another one's score has in the header.
absl::Status CheckHeader(const PredictOptions& options, const JobSpec& spec) {
  if (!options.header || options.scores_only) return absl::OkStatus();
  std::set<std::string> labels;
  for (const LabelConfig& label : spec.labels()) labels.insert(label.name());
  for (const std::string& label : labels) {
    const std::string score = absl::StrCat(label, "_score");
    if (labels.count(score) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("--header would name ", score, " twice: label '",
                                                   score, "', and the score of label '", label,
                                                   "'; add --scores-only, or leave it out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelTables> TablesOf(const FoundCheckpoint& found, const JobSpec& spec) {
  const Manifest& manifest = found.manifest;
  auto tables = MakeModelTables(spec, manifest.fields(), manifest.numeric());
  if (!tables.ok()) return tables;
  const Schema made = MakeSchema(manifest.job().spec(), *tables);
  const absl::Status saved = CheckSaved(SavedSchema(manifest), made);
  if (saved.ok()) return tables;
  return WithWholeOne(
      absl::DataLossError(absl::StrCat("checkpoint ", found.folder, ": ", saved.message())),
      found.folder);
}

// Reads, scores and writes what there is, until there is no more.
absl::Status ScoreAll(const PredictOptions& options, const ModelTables& tables, ScoredLines* lines,
                      Scorer* scorer, Quality* quality, ScoreOutput* output,
                      PredictSummary* summary) {
  const PredictionColumns columns =
      options.scores_only ? PredictionColumns::kScores : PredictionColumns::kLabelsAndScores;
  std::string text = options.header ? PredictionHeader(tables.tasks, columns) : "";
  const BatchLimit at_a_time = ScoredAtATime(tables);
  Batch batch;
  std::vector<float> scores;
  while (true) {
    if (!text.empty()) {
      if (absl::Status s = output->Append(text); !s.ok()) return s;
    }
    const absl::StatusOr<bool> more = lines->Read(at_a_time, &batch);
    if (!more.ok()) return more.status();
    if (!*more) return output->Finish();
    if (absl::Status s = scorer->Score(Step(0), batch, &scores); !s.ok()) return s;
    text.clear();
    AppendPredictions(tables.tasks, columns, batch.labels, scores, &text);
    summary->lines += batch.size;
    summary->labelled += LabelledLines(batch);
    if (summary->lines * tables.tasks.size() > options.most_measured) continue;
    summary->measured = summary->lines;
    quality->Add(batch, scores);
  }
}

}  // namespace

absl::StatusOr<PredictSummary> RunPredict(const PredictOptions& options) {
  const ops::ExactFloatScope exact;
  auto found = FindCheckpoint(options.checkpoint_dir);
  if (!found.ok()) return found.status();
  if (found->manifest.schema().model() == kImportedModel) {
    return absl::FailedPreconditionError(
        absl::StrCat(found->folder,
                     " has rows that `strata import` wrote, and no model; train a "
                     "job from them (spec.model.initFrom), and name its checkpoint"));
  }
  JobSpec spec = found->manifest.job().spec();
  if (!options.format_override.empty()) spec.mutable_data()->set_format(options.format_override);
  if (absl::Status s = NameVocabularies(options, found->manifest.schema(), spec); !s.ok()) return s;
  const auto place = FindOutput(options, found->folder);
  if (!place.ok()) return place.status();
  if (absl::Status s = CheckHeader(options, spec); !s.ok()) return s;
  const auto lines = OpenLines(options, spec, found->manifest, *place);
  if (!lines.ok()) return lines.status();
  const auto tables = TablesOf(*found, spec);
  if (!tables.ok()) return tables.status();
  const auto model = MakeModel(*tables);
  if (!model.ok()) return model.status();
  ScoreOutput output;
  if (absl::Status s = output.Open(*place); !s.ok()) return s;
  auto scratch = ScratchFolder::Make(ScratchFolder::kPredict);
  if (!scratch.ok()) return scratch.status();
  const auto server = CheckpointServer::Start(*found, {.directory = scratch->path(),
                                                       .dram_bytes = options.dram_bytes,
                                                       .cancelled = options.cancelled});
  if (!server.ok()) return server.status();
  const Exchange exchange(*tables, (*server)->map());
  const auto client = (*server)->MakeClient(&exchange);
  const auto parallel = ops::MakeParallel(std::max(1u, std::thread::hardware_concurrency()));
  Scorer scorer({.client = client.get(),
                 .tables = &*tables,
                 .exchange = &exchange,
                 .model = model->get(),
                 .parallel = parallel.get()});
  const MetricsPlan metrics = MetricsOf(spec);
  Quality quality(&*tables, metrics,
                  FieldNumber(spec, found->manifest.fields(), metrics.gauc_field));
  PredictSummary summary;
  summary.step = found->manifest.step();
  summary.checkpoint = found->folder;
  summary.to_device = place->device;
  const absl::Status scored =
      ScoreAll(options, *tables, lines->get(), &scorer, &quality, &output, &summary);
  summary.reader_left = output.reader_left();
  if (!scored.ok() && !summary.reader_left) return (*server)->Explain(scored);
  summary.bad_lines = (*lines)->bad_lines();
  summary.measured_labelled = quality.labelled();
  quality.Fill(&summary.result);
  return summary;
}

}  // namespace strata
