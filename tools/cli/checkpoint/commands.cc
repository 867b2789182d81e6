#include "tools/cli/checkpoint/commands.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_text.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/job_watch.h"
#include "tools/cli/context/connection.h"
#include "tools/cluster/checkpoint/diff.h"
#include "tools/cluster/checkpoint/folder.h"
#include "tools/cluster/checkpoint/quantise.h"
#include "tools/cluster/checkpoint/quantised_copy.h"
#include "tools/cluster/checkpoint/repair.h"
#include "tools/cluster/checkpoint/verify.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void PrintJson(const Json& json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

absl::StatusOr<std::string> CheckpointOfJob(const ClusterOptions& cluster, const std::string& job) {
  const auto scheduler = ConnectScheduler(cluster);
  if (!scheduler.ok()) return scheduler.status();
  absl::StatusOr<JobStatus> status = (*scheduler)->GetJob(ParseJobRef(job), absl::Seconds(10));
  if (!status.ok()) return status.status();
  if (status->checkpoint().empty()) {
    return absl::NotFoundError(absl::StrCat("job ", job, " has no checkpoint (yet)"));
  }
  return status->checkpoint();
}

ExitCode RunCheckpointCreate(const CheckpointCreateOptions& options) {
  CreateCheckpointRequest request;
  *request.mutable_job() = ParseJobRef(options.job);
  const absl::Duration wait = absl::Seconds(options.timeout_seconds);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  const auto connected = ConnectScheduler(options.cluster);
  if (!connected.ok()) return ReportError(connected.status());
  SchedulerClient* const scheduler = connected->get();
  // An answer that comes at once tells the client how long a silence may be.
  const auto job = scheduler->GetJob(request.job(), absl::Seconds(10));
  if (!job.ok()) return ReportError(job.status());
  absl::StatusOr<CreateCheckpointReply> reply =
      scheduler->CreateCheckpoint(request, wait + absl::Seconds(10));
  if (!reply.ok()) return ReportError(reply.status());
  if (options.json) {
    PrintJson(Json{{"directory", reply->directory()},
                   {"step", reply->step()},
                   {"modelHash", reply->model_hash()}});
  } else {
    std::printf("%s\n", reply->directory().c_str());
  }
  return kExitOk;
}

ExitCode RunCheckpointList(const CheckpointListOptions& options) {
  std::string directory = options.directory;
  if (directory.empty()) {
    if (options.job.empty()) {
      return ReportError(
          absl::InvalidArgumentError("checkpoint list: give a folder, or --job JOB"));
    }
    absl::StatusOr<std::string> newest = CheckpointOfJob(options.cluster, options.job);
    if (!newest.ok()) return ReportError(newest.status());
    directory = fs::path(*newest).parent_path().string();
  }
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return ReportError(absl::NotFoundError(absl::StrCat(directory, ": no such folder")));
  }
  absl::StatusOr<CheckpointList> list = ListCheckpoints(directory);
  if (!list.ok()) return ReportError(list.status());
  Json json{
      {"complete", Json::array()}, {"damaged", Json::array()}, {"otherFormat", Json::array()}};
  for (const CheckpointEntry& c : list->complete) {
    json["complete"].push_back(Json{{"step", c.step}, {"directory", c.folder}});
    if (!options.json) std::printf("%s\n", absl::StrCat("step ", c.step, "  ", c.folder).c_str());
  }
  for (const DamagedCheckpoint& c : list->damaged) {
    const std::string why(c.error.message());
    const bool other = absl::IsUnimplemented(c.error);
    json[other ? "otherFormat" : "damaged"].push_back(
        Json{{"directory", c.folder}, {"error", why}});
    std::fprintf(stderr, "strata: %s is %s: %s\n", c.folder.c_str(),
                 other ? "of another format" : "damaged", why.c_str());
  }
  if (options.json) PrintJson(json);
  if (list->complete.empty()) std::fprintf(stderr, "no complete checkpoint\n");
  return kExitOk;
}

ExitCode VerifyCopy(const CheckpointVerifyOptions& options) {
  auto copy = VerifyQuantised(options.directory);
  if (!copy.ok()) return ReportError(copy.status());
  if (options.json) {
    PrintJson(Json{{"directory", copy->folder},
                   {"type", copy->type},
                   {"checkpoint", copy->checkpoint},
                   {"step", copy->step},
                   {"modelHash", copy->model_hash},
                   {"bytes", copy->bytes},
                   {"files", copy->files}});
    return kExitOk;
  }
  std::printf("%s is whole\n  step %s as %s, %s bytes in %s files\n  of model hash %s\n",
              copy->folder.c_str(), WithCommas(copy->step).c_str(), copy->type.c_str(),
              WithCommas(copy->bytes).c_str(), WithCommas(copy->files).c_str(),
              copy->model_hash.c_str());
  return kExitOk;
}

ExitCode RunCheckpointVerify(const CheckpointVerifyOptions& options) {
  if (IsQuantisedCopy(options.directory)) return VerifyCopy(options);
  absl::StatusOr<CheckpointSummary> summary = VerifyCheckpoint(options.directory);
  if (!summary.ok()) return ReportError(summary.status());
  if (options.json) {
    PrintJson(Json{{"directory", summary->directory},
                   {"step", summary->step},
                   {"modelHash", summary->model_hash},
                   {"rows", summary->rows},
                   {"bytes", summary->bytes},
                   {"files", summary->files}});
    return kExitOk;
  }
  std::printf("%s is whole\n  step %s, %s rows, %s bytes in %s files\n  model hash %s\n",
              summary->directory.c_str(), WithCommas(summary->step).c_str(),
              WithCommas(summary->rows).c_str(), WithCommas(summary->bytes).c_str(),
              WithCommas(summary->files).c_str(), summary->model_hash.c_str());
  return kExitOk;
}

ExitCode RunCheckpointShow(const CheckpointShowOptions& options) {
  auto found = FindCheckpoint(options.directory);
  if (!found.ok()) return ReportError(found.status());
  const Manifest& m = found->manifest;
  const Schema schema = SavedSchema(m);
  uint64_t bytes = 0;
  for (const CheckpointFile& f : m.files()) bytes += f.bytes();
  if (options.json) {
    PrintJson(Json{{"directory", found->folder},
                   {"job", m.job().metadata().name()},
                   {"jobUid", m.job_uid()},
                   {"clusterId", m.cluster_id()},
                   {"step", m.step()},
                   {"modelHash", m.model_hash()},
                   {"partitions", m.partitions()},
                   {"bytes", bytes},
                   {"files", m.files_size()},
                   {"schema", Json::parse(SchemaJson(schema, m.job().spec()))}});
    return kExitOk;
  }
  std::printf("%s\n  job %s, step %s, %s bytes in %s files\n  model hash %s\n\n%s",
              found->folder.c_str(), m.job().metadata().name().c_str(),
              WithCommas(m.step()).c_str(), WithCommas(bytes).c_str(),
              WithCommas(m.files_size()).c_str(), m.model_hash().c_str(),
              SchemaText(schema, m.job().spec()).c_str());
  return kExitOk;
}

constexpr SchemaSides kSides{.saved = "a", .now = "b"};

// Differences of the schemas, in a form for people.
void PrintSchemas(const SchemaDifference& schemas) {
  std::printf("a  step %s  %s\nb  step %s  %s\n", WithCommas(schemas.step_a).c_str(),
              schemas.a.c_str(), WithCommas(schemas.step_b).c_str(), schemas.b.c_str());
  bool same = true;
  for (const SchemaEntry& e : schemas.mapping.entries) {
    if (e.change == SchemaChange::kLoaded) continue;
    same = false;
    std::printf("schema: %s: %s\n", ChangeName(e.change), EntryText(e, kSides).c_str());
  }
  if (same) std::printf("schema: the same tables, tensors, fields, labels and weights of lines\n");
}

Json SidesJson(const SchemaDifference& schemas) {
  return Json{{"a", Json{{"directory", schemas.a}, {"step", schemas.step_a}}},
              {"b", Json{{"directory", schemas.b}, {"step", schemas.step_b}}}};
}

Json EntriesJson(const SchemaDifference& schemas) {
  Json json = Json::array();
  for (const SchemaEntry& e : schemas.mapping.entries) {
    if (e.change == SchemaChange::kLoaded) continue;
    json.push_back(Json{{"change", ChangeName(e.change)},
                        {"part", PartName(e.part)},
                        {"name", e.name},
                        {"text", EntryText(e, kSides)}});
  }
  return json;
}

// "table features, tensor bias (by labels); tensor layer_2_bias (in b alone)"
std::string RestText(const std::vector<NotCompared>& rest) {
  std::vector<std::string> groups;
  for (size_t i = 0; i < rest.size(); ++i) {
    std::string group = absl::StrCat(rest[i].part, " ", rest[i].name);
    for (; i + 1 < rest.size() && rest[i + 1].why == rest[i].why; ++i) {
      absl::StrAppend(&group, ", ", rest[i + 1].part, " ", rest[i + 1].name);
    }
    groups.push_back(absl::StrCat(group, " (", rest[i].why, ")"));
  }
  return absl::StrJoin(groups, "; ");
}

void AddRows(const CheckpointDifference& found, Json& json) {
  json["tables"] = Json::array();
  for (const TableDifference& t : found.tables) {
    Json top = Json::array();
    for (const RowDifference& r : t.top) {
      top.push_back(Json{{"key", r.key.value}, {"distance", r.distance}, {"largest", r.largest}});
    }
    json["tables"].push_back(Json{{"name", t.name},
                                  {"rowsA", t.rows_a},
                                  {"rowsB", t.rows_b},
                                  {"added", t.added},
                                  {"removed", t.removed},
                                  {"changed", t.changed},
                                  {"distance", t.distance},
                                  {"largest", t.largest},
                                  {"top", std::move(top)}});
  }
  json["notCompared"] = Json::array();
  for (const NotCompared& n : found.not_compared) {
    json["notCompared"].push_back(Json{{"part", n.part}, {"name", n.name}, {"why", n.why}});
  }
}

void PrintRows(const CheckpointDifference& found) {
  for (const TableDifference& t : found.tables) {
    std::printf(
        "%s: %s rows in a, %s in b; %s added, %s removed, %s changed (by %g, one weight by "
        "%g)\n",
        t.name.c_str(), WithCommas(t.rows_a).c_str(), WithCommas(t.rows_b).c_str(),
        WithCommas(t.added).c_str(), WithCommas(t.removed).c_str(), WithCommas(t.changed).c_str(),
        t.distance, t.largest);
    for (const RowDifference& r : t.top) {
      std::printf("  key %s  by %g, one weight by %g\n", std::to_string(r.key.value).c_str(),
                  r.distance, r.largest);
    }
  }
  if (found.not_compared.empty()) return;
  std::printf("not compared: %s\n", RestText(found.not_compared).c_str());
}

ExitCode RunCheckpointDiff(const CheckpointDiffOptions& options) {
  const auto schemas = CompareSchemas(options.a, options.b);
  if (!schemas.ok()) return ReportError(schemas.status());
  Json json = SidesJson(*schemas);
  // Of the folders that were found: a directory may have a newer checkpoint by now.
  const auto found = DiffCheckpoints(schemas->a, schemas->b, options.top);
  // Where nothing of the rows is compared, how the models differ is told.
  if (!found.ok() && !absl::IsFailedPrecondition(found.status())) {
    return ReportError(found.status());
  }
  if (options.json) {
    if (found.ok()) json["equal"] = found->hash_a == found->hash_b;
    json["schema"] = EntriesJson(*schemas);
    if (found.ok()) AddRows(*found, json);
    PrintJson(json);
  } else {
    PrintSchemas(*schemas);
    if (found.ok()) PrintRows(*found);
  }
  return found.ok() ? kExitOk : ReportError(found.status());
}

ExitCode RunCheckpointRepair(const CheckpointRepairOptions& options) {
  auto report = RepairCheckpoints(
      options.directory, options.dry_run ? RepairMode::kOnlyLook : RepairMode::kMoveDamaged);
  if (!report.ok()) return ReportError(report.status());
  Json json{{"directory", report->directory},
            {"dryRun", options.dry_run},
            {"damaged", Json::array()},
            {"incomplete", report->incomplete},
            {"newest", nullptr}};
  for (const DamagedFolder& d : report->damaged) {
    const std::string why(d.error.message());
    json["damaged"].push_back(
        Json{{"directory", d.folder}, {"error", why}, {"movedTo", d.moved_to}});
    if (options.json) continue;
    std::printf("damaged: %s\n  %s\n", d.folder.c_str(), why.c_str());
    if (!d.moved_to.empty()) std::printf("  is now %s\n", d.moved_to.c_str());
  }
  if (report->newest) {
    json["newest"] = Json{{"directory", report->newest->directory},
                          {"step", report->newest->step},
                          {"modelHash", report->newest->model_hash}};
  }
  if (options.json) {
    PrintJson(json);
  } else {
    for (const std::string& folder : report->incomplete) {
      std::printf("incomplete, left alone: %s\n", folder.c_str());
    }
    if (report->newest) {
      std::printf("the newest whole checkpoint is %s, step %s, model hash %s\n",
                  report->newest->directory.c_str(), WithCommas(report->newest->step).c_str(),
                  report->newest->model_hash.c_str());
    }
  }
  if (report->newest) return kExitOk;
  return ReportError(
      absl::NotFoundError(absl::StrCat("no whole checkpoint is in ", options.directory)));
}

ExitCode RunCheckpointQuantise(const CheckpointQuantiseOptions& options) {
  auto summary = QuantiseCheckpoint(
      {.checkpoint = options.checkpoint,
       .output = options.output,
       .type = options.type == "int8" ? QuantisedType::kInt8 : QuantisedType::kFp16});
  if (!summary.ok()) return ReportError(summary.status());
  Json json{{"checkpoint", summary->checkpoint},
            {"step", summary->step},
            {"bytes", summary->bytes},
            {"arrays", Json::array()}};
  for (const QuantisedArray& a : summary->arrays) {
    json["arrays"].push_back(Json{{"name", a.name},
                                  {"dtype", a.dtype},
                                  {"rows", a.rows},
                                  {"dim", a.dim},
                                  {"largestError", a.largest_error},
                                  {"rmsError", a.rms_error},
                                  {"rms", a.rms}});
    if (options.json) continue;
    std::printf("%s: %s x %s of %s, wrong by at most %g, rms %g of %g\n", a.name.c_str(),
                WithCommas(a.rows).c_str(), WithCommas(a.dim).c_str(), a.dtype.c_str(),
                a.largest_error, a.rms_error, a.rms);
  }
  if (options.json) {
    PrintJson(json);
  } else {
    std::printf("%s bytes in %s\n", WithCommas(summary->bytes).c_str(), options.output.c_str());
  }
  return kExitOk;
}

}  // namespace strata
