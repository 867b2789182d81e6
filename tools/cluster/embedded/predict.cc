#include "tools/cluster/embedded/predict.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "ops/mxcsr.h"
#include "ops/parallel.h"
#include "proto/core/shard_map.h"
#include "proto/core/uid.h"
#include "proto/job/label_spec.h"
#include "proto/job/model_tables.h"
#include "proto/job/schema.h"
#include "proto/job/schema_mapping.h"
#include "proto/job/schema_start.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/prediction_names.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "server/server.h"
#include "tools/cluster/checkpoint/folder.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "tools/cluster/embedded/standard_input.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"
#include "worker/client/server_links.h"
#include "worker/data/files/file_list.h"
#include "worker/data/reading/data_access.h"
#include "worker/data/reading/field_names.h"
#include "worker/eval/evaluator.h"
#include "worker/models/models.h"

namespace strata {
namespace {

constexpr uint64_t kJob = 1;
constexpr uint64_t kSession = 1;
constexpr char kServer[] = "predict";

// A scheduler that knows one server and one thing to say: hold this checkpoint. Thread-safe.
class FixedDirective : public SchedulerClient {
 public:
  explicit FixedDirective(ServerJobDirective job) : job_(std::move(job)) {}

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration) override {
    absl::MutexLock lock(&mu_);
    for (const ServerJobReport& r : report.server_jobs()) {
      if (r.job() == kJob) report_ = r;
    }
    NodeDirective directive;
    directive.set_session(kSession);
    directive.set_version(1);
    directive.set_lease_ms(10000);
    directive.set_cluster_id(job_.cluster_id());
    directive.set_transient(true);
    *directive.add_server_jobs() = job_;
    return directive;
  }

  // Waits until the server holds the checkpoint, or says why it cannot.
  absl::Status AwaitOpen() {
    absl::MutexLock lock(&mu_);
    const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return report_.state() == ServerJobReport::OPEN ||
             report_.state() == ServerJobReport::FAILED || report_.state() == ServerJobReport::LOST;
    };
    mu_.Await(absl::Condition(&settled));
    if (report_.state() == ServerJobReport::OPEN) return absl::OkStatus();
    return absl::DataLossError(report_.message());
  }

  absl::StatusOr<SubmitReply> Submit(const SubmitRequest&, absl::Duration) override {
    return None();
  }
  absl::StatusOr<JobStatus> GetJob(const JobRef&, absl::Duration) override { return None(); }
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration) override { return None(); }
  absl::StatusOr<JobStatus> CancelJob(const JobRef&, absl::Duration) override { return None(); }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest&,
                                                         absl::Duration) override {
    return None();
  }
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration) override { return None(); }
  absl::StatusOr<JobShards> GetShards(const JobRef&, absl::Duration) override { return None(); }
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest&, absl::Duration) override {
    return None();
  }
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest&,
                                                         absl::Duration) override {
    return None();
  }

 private:
  static absl::Status None() { return absl::UnimplementedError("there is no scheduler here"); }

  const ServerJobDirective job_;
  absl::Mutex mu_;
  ServerJobReport report_ ABSL_GUARDED_BY(mu_);
};

// The checkpoint as one server's job: no limit on memory, nothing logged, everything in one place.
ServerJobDirective DirectiveFor(const FoundCheckpoint& found, const ShardMap& map,
                                const JobIdentity& identity) {
  ServerJobDirective d;
  d.set_job(kJob);
  d.set_cluster_id(identity.cluster.text());
  d.set_job_uid(identity.job.text());
  d.set_transient(true);
  d.set_generation(1);
  *d.mutable_spec() = found.manifest.job();
  StorageSpec& storage = *d.mutable_spec()->mutable_spec()->mutable_storage();
  storage.set_durability("memory");
  storage.set_dram_bytes_per_server("0");
  storage.clear_gpu_bytes_per_server();
  storage.clear_gpu_backend();
  storage.clear_directory();
  d.mutable_spec()->mutable_spec()->mutable_output()->clear_removed();
  d.mutable_shape()->set_fields(found.manifest.fields());
  d.mutable_shape()->set_numeric(found.manifest.numeric());
  d.set_map_epoch(map.epoch().value);
  for (const ShardPlace& s : map.shards()) {
    ShardAssignment* a = d.add_shards();
    a->set_shard(s.id.value);
    a->set_first_partition(s.range.first.value);
    a->set_last_partition(s.range.last.value);
  }
  d.set_restore_from(found.folder);
  const Schema& schema = found.manifest.schema();
  *d.mutable_restore_plan() =
      MakeRestorePlan(MapSchemas(schema, schema), schema, schema, InitFromSpec());
  d.set_start_step(found.manifest.step());
  return d;
}

// What is there stays, as the shell has it there: what this process has open is written where it
// stands (for /dev/stdout), everything else at its end.
std::FILE* OpenDevice(const std::string& path) {
  int open = -1;
  absl::string_view number = path;
  if (!absl::ConsumePrefix(&number, absl::StrCat("/proc/", getpid(), "/fd/")) ||
      !absl::SimpleAtoi(number, &open)) {
    return std::fopen(path.c_str(), "ae");
  }
  const int copy = fcntl(open, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? nullptr : fdopen(copy, "w");
}

// "-": standard output; else a device.
absl::Status CopyTo(const std::string& output, const std::string& path) {
  std::FILE* to = output == "-" ? stdout : OpenDevice(output);
  if (to == nullptr) return ErrnoStatus(errno, "write", output);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(1 << 16);
  size_t put = 0, got = 0;
  do {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    got = static_cast<size_t>(in.gcount());
    put = std::fwrite(block.data(), 1, got, to);
  } while (got > 0 && put == got);
  int error = put == got && std::fflush(to) == 0 ? 0 : errno;
  if (to != stdout && std::fclose(to) != 0 && error == 0) error = errno;
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "cannot write to ", output == "-" ? "standard output" : output, ": ", std::strerror(error)));
}

// Where the output lies; "-": standard output. What is written is none of what is read.
absl::StatusOr<PredictionsPlace> FindOutput(const PredictOptions& options,
                                            const std::string& checkpoint) {
  if (options.output.empty() || options.output == "-") {
    return PredictionsPlace{.path = options.output, .device = options.output == "-"};
  }
  auto place = PlaceOfPredictions(options.output);
  if (!place.ok() || place->device) return place;
  for (const std::string& path : NamesInPredict(place->path)) {
    absl::Status s = CheckOutsideCheckpoint("--output", path, checkpoint);
    if (s.ok()) s = CheckNoInput("--output", path, options.inputs);
    if (!s.ok()) return s;
  }
  return place;
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
  const auto output = FindOutput(options, found->folder);
  if (!output.ok()) return output.status();
  auto scratch = ScratchFolder::Make(ScratchFolder::kPredict);
  if (!scratch.ok()) return scratch.status();
  DataAccess* data = DataAccess::Files();
  std::unique_ptr<DataAccess> standard_input;
  const auto dashes = std::count(options.inputs.begin(), options.inputs.end(), "-");
  if (dashes > 1) {
    return absl::InvalidArgumentError(
        "'-', standard input, is named more than once; it can be read once");
  }
  if (dashes == 1) {
    auto spooled = SpoolStandardInput(scratch->path(), nullptr);
    if (!spooled.ok()) return spooled.status();
    standard_input = *std::move(spooled);
    data = standard_input.get();
  }
  auto inputs = ListFiles("inputs", options.inputs);
  if (!inputs.ok()) return inputs.status();
  auto index = data->BuildIndex(spec, *inputs, nullptr);
  if (!index.ok()) return index.status();
  DataShape shape;
  shape.set_fields(found->manifest.fields());
  shape.set_numeric(found->manifest.numeric());
  auto source = data->Open(spec, *index, shape);
  if (!source.ok()) return source.status();
  auto tables = MakeModelTables(spec, shape.fields(), shape.numeric());
  if (!tables.ok()) return tables.status();
  const Manifest& manifest = found->manifest;
  const Schema made = MakeSchema(manifest.job().spec(), *tables);
  if (absl::Status s = CheckSaved(manifest.schema(), made); !s.ok()) {
    return WithWholeOne(
        absl::DataLossError(absl::StrCat("checkpoint ", found->folder, ": ", s.message())),
        found->folder);
  }
  auto model = MakeModel(*tables);
  if (!model.ok()) return model.status();

  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(found->manifest.partitions()), 1,
                                      std::min(cores * 2, found->manifest.partitions()));
  const JobIdentity identity = {DrawId<ClusterId>(*IdSource::System()),
                                DrawId<JobUid>(*IdSource::System())};
  FixedDirective scheduler(DirectiveFor(*found, map, identity));
  auto transport = MakeInProcTransport();
  server::ServerOptions server_options;
  server_options.name = kServer;
  server_options.scheduler = &scheduler;
  server_options.transport = transport.get();
  server_options.listen_address = kServer;
  server_options.directory = scratch->path();
  auto server = server::Server::Start(server_options);
  if (!server.ok()) return server.status();
  if (absl::Status s = scheduler.AwaitOpen(); !s.ok()) {
    const bool whole = VerifyCheckpointFiles(found->folder, found->manifest).ok();
    return whole ? s : WithWholeOne(s, found->folder);
  }

  const Exchange exchange(*tables, map);
  ServerLinks links(transport.get(), 1);
  links.SetAddresses({kServer});
  ParameterClientOptions client_options;
  client_options.exchange = &exchange;
  client_options.links = &links;
  client_options.header = {JobId(kJob), SessionId(kSession), Generation(1), map.epoch()};
  client_options.identity = identity;
  client_options.give_up_after = absl::Seconds(30);
  ParameterClient client(client_options);
  auto parallel = ops::MakeParallel(cores);
  EvaluatorOptions evaluator_options;
  evaluator_options.client = &client;
  evaluator_options.source = source->get();
  evaluator_options.lines = index->lines();
  evaluator_options.tables = &*tables;
  evaluator_options.metrics = MetricsOf(spec);
  evaluator_options.gauc_field = FieldNumber(spec, evaluator_options.metrics.gauc_field);
  evaluator_options.exchange = &exchange;
  evaluator_options.model = model->get();
  evaluator_options.parallel = parallel.get();
  Evaluator evaluator(evaluator_options);
  // A device or a pipe is written to, not replaced.
  const std::string path = output->device ? scratch->path() + "/predictions" : output->path;
  auto result = evaluator.Run(Step(0), path);
  if (!result.ok()) return result.status();
  if (output->device) {
    if (absl::Status s = CopyTo(output->path, path); !s.ok()) return s;
  }
  return PredictSummary{result->examples(), *result, found->manifest.step(), found->folder,
                        output->device};
}

}  // namespace strata
