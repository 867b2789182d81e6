#include "tools/cluster/embedded/embedded.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/device_api.h"
#include "proto/job/data_spec.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/base/clock.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/leftovers.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "tools/cluster/embedded/standard_input.h"
#include "worker/data/reading/data_access.h"
#include "worker/device/open_device.h"

namespace strata {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr absl::Duration kCall = absl::Seconds(30);

// How long the end of a job waits for its servers to remove what they keep.
constexpr absl::Duration kClose = absl::Seconds(10);
constexpr absl::Duration kClosePoll = absl::Milliseconds(2);

bool IsFinal(JobState state) { return state == SUCCEEDED || state == FAILED || state == CANCELLED; }

// Ctrl-C: what was trained so far is kept, if the job has a place for it.
void CheckpointBeforeEnd(SchedulerClient& scheduler, const TrainingJob& job, const JobRef& ref) {
  if (job.spec().checkpoint().directory().empty()) return;
  CreateCheckpointRequest request;
  *request.mutable_job() = ref;
  request.set_wait_ms(60000);
  // A job that is just ending refuses; its own last checkpoint is then on its way.
  scheduler.CreateCheckpoint(request, absl::Seconds(65)).status().IgnoreError();
}

// The GPU that the job's workers compute with; null: none.
absl::StatusOr<std::unique_ptr<device::OpenedDevice>> OpenDeviceOf(const WorkerSpec& worker) {
  constexpr absl::string_view kCuda = "cuda:";
  const std::string& wanted = worker.device();
  if (absl::StartsWith(wanted, kCuda)) {
    return device::OpenWorkerDevice(wanted.substr(kCuda.size()), "", 1);
  }
  return device::OpenWorkerDevice(wanted == "auto" ? "auto" : "none", "", 1);
}

// Of a job whose workers have no GPU: now, and not once its checkpoints were replaced.
absl::Status CheckPrecision(const WorkerSpec& worker) {
  if (worker.device() == "host" || worker.precision() == "fp32") return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "spec.worker.precision is ", worker.precision(), ", but ", ops::gpu::Devices().size(),
      " GPUs are seen here, of which spec.worker.device: auto takes one if it is the only one, and "
      "a CPU computes in fp32; give fp32, or name a GPU as cuda:UUID"));
}

// What the job's servers keep rows on where its workers compute on the CPU. Null: they need no GPU.
absl::StatusOr<std::unique_ptr<ops::gpu::CudaApi>> OpenServerDevice(const StorageSpec& storage) {
  const auto bytes = ParseBytes(storage.gpu_bytes_per_server());
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0 || storage.gpu_backend() == "host") return nullptr;
  auto opened = ops::gpu::OpenDevice("");
  if (opened.ok()) return opened;
  return absl::Status(opened.status().code(),
                      absl::StrCat("spec.storage.gpuBytesPerServer is ",
                                   storage.gpu_bytes_per_server(), ": ", opened.status().message(),
                                   "; or try the tier with spec.storage.gpuBackend: host"));
}

// Nodes that are slow to confirm are left behind: the next run names what they keep.
void AwaitClosed(SchedulerClient& scheduler, const JobRef& ref) {
  const absl::Time give_up = Clock::Real()->Now() + kClose;
  while (Clock::Real()->Now() < give_up) {
    const auto status = scheduler.GetJob(ref, kCall);
    if (!status.ok() || status->closing().empty()) return;
    absl::SleepFor(kClosePoll);
  }
}

// What earlier runs left where this one keeps its files.
void NoteLeftovers(const TrainingJob& job, const std::function<void(const std::string&)>& note) {
  if (!note) return;
  std::vector<std::string> places = {ScratchFolder::Base()};
  const std::string& storage = job.spec().storage().directory();
  if (!storage.empty()) places.push_back(storage);
  for (const std::string& place : places) {
    const auto found = FindLeftovers(place);
    if (!found.ok()) continue;
    for (const Leftover& left : *found) {
      if (left.in_use || !left.abandoned) continue;
      note(absl::StrCat(left.folder, " (", SizeText(left.bytes), ", ", left.whose,
                        ") was left by a run that was killed; remove it with: strata clean ",
                        place));
    }
  }
}

}  // namespace

absl::StatusOr<JobStatus> RunEmbedded(const EmbeddedOptions& options) {
  TrainingJob job = options.job;
  if (absl::Status s = ResolveJob(job); !s.ok()) return s;
  NoteLeftovers(job, options.on_note);
  auto scratch = ScratchFolder::Make(ScratchFolder::kTrain);
  if (!scratch.ok()) return scratch.status();
  std::unique_ptr<DataAccess> standard_input;  // outlives the cluster
  if (spec::ReadsStandardInput(job.spec().data())) {
    auto spooled = SpoolStandardInput(scratch->path(), options.stop);
    if (!spooled.ok()) return spooled.status();
    standard_input = *std::move(spooled);
  }
  EmbeddedClusterOptions cluster_options;
  if (standard_input != nullptr) cluster_options.data = standard_input.get();
  // Copies lie on different servers.
  cluster_options.servers =
      std::max(job.spec().replicas().servers(), job.spec().storage().replicas());
  cluster_options.workers = job.spec().replicas().workers();
  cluster_options.directory = scratch->path();
  cluster_options.paths = options.paths;
  auto device = OpenDeviceOf(job.spec().worker());  // outlives the cluster
  if (!device.ok()) {
    return absl::Status(device.status().code(),
                        absl::StrCat("spec.worker.device is ", job.spec().worker().device(), ": ",
                                     device.status().message()));
  }
  if (*device == nullptr) {
    if (absl::Status s = CheckPrecision(job.spec().worker()); !s.ok()) return s;
  }
  std::unique_ptr<ops::gpu::CudaApi> server_device;  // as well
  if (*device != nullptr) {
    cluster_options.devices.assign(cluster_options.workers, &(*device)->device);
    cluster_options.server_device = (*device)->device.api;
  } else {
    auto opened = OpenServerDevice(job.spec().storage());
    if (!opened.ok()) return opened.status();
    server_device = *std::move(opened);
    cluster_options.server_device = server_device.get();
  }
  auto cluster = EmbeddedCluster::Start(cluster_options);
  if (!cluster.ok()) return cluster.status();
  SchedulerClient& scheduler = (*cluster)->scheduler();

  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("embedded");
  submit.set_resume(options.resume);
  submit.set_overwrite(options.overwrite);
  auto submitted = scheduler.Submit(submit, kCall);
  if (!submitted.ok()) return submitted.status();
  JobRef ref;
  ref.set_job(submitted->job());

  bool cancelled = false;
  while (true) {
    auto status = scheduler.GetJob(ref, kCall);
    if (!status.ok()) return status.status();
    if (options.on_progress) options.on_progress(*status);
    if (IsFinal(status->state())) {
      AwaitClosed(scheduler, ref);
      return *status;
    }
    if (options.stop != nullptr && options.stop->load() && !cancelled) {
      cancelled = true;
      CheckpointBeforeEnd(scheduler, job, ref);
      if (auto s = scheduler.CancelJob(ref, kCall); !s.ok()) return s.status();
    }
    absl::SleepFor(kPoll);
  }
}

}  // namespace strata
