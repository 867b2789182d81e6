// A server as an object: registers with the scheduler, opens and closes jobs as it is told, and
// serves the data plane. strata-server runs one; the embedded cluster runs several in one process.
#ifndef STRATA_SERVER_SERVER_H_
#define STRATA_SERVER_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/runtime/transport/transport.h"
#include "server/server_metric.h"
#include "storage/gpu/backend.h"
#include "storage/log/update_log.h"

namespace strata::server {

struct ServerOptions {
  static constexpr uint64_t kLeastMemtableBytes = 64 << 10;  // that both SSD tiers take

  std::string name;                      // stable over restarts, unique in the cluster
  SchedulerClient* scheduler = nullptr;  // both outlive the server
  DataTransport* transport = nullptr;
  // Of this process; learns from the scheduler which certificates count no more. Null: nobody is
  // asked.
  std::shared_ptr<CredentialSource> credentials = nullptr;
  std::string listen_address = "127.0.0.1:0";
  std::string advertise_host;   // told to the scheduler instead of the host listened on; or empty
  std::string metrics_address;  // told to the scheduler
  // Everything that is kept lies under it (unless a job names spec.storage.directory: then under
  // that folder / `name`). Locked exclusively.
  std::string directory;
  // Where jobs may keep rows, checkpoints and removals (--data-root). Default: anywhere.
  PathPolicy paths = {};
  size_t threads = 0;  // that run shards; 0: one per core
  // Bytes of requests, and of replies being filled, held at once; beyond it RESOURCE_EXHAUSTED. A
  // job's gates hold up to lanes x (bytes of a lane's push to this server): the limit must be above
  // that for the jobs that run here at once.
  uint64_t request_bytes = uint64_t{4} << 30;
  // Update logs go around the page cache where appends are at least this long on average
  // (storage/log/segment_writer.h); 0: always.
  uint64_t log_direct_from_bytes = storage::UpdateLogOptions{}.direct_from_bytes;
  // A memtable of the SSD tier of a job (storage/tier/row_tier.h), of which there are two (row
  // file) or three (RocksDB); at least kLeastMemtableBytes. 0: 8 MiB, 16 MiB.
  uint64_t tier_memtable_bytes = 0;
  // Memory for the GPU tiers of jobs that want a GPU (spec.storage.gpuBackend: cuda); null: this
  // server has none, and such jobs fail.
  storage::gpu::GpuBackendFactory make_gpu;
  // The UUID of that GPU: `strata nodes` shows it, and only servers with one are given jobs with
  // such a tier. "": none, and then no make_gpu.
  std::string device = {};
  // What jobs may take of this machine's memory, of its disk and of the GPU's memory. 0: a share of
  // the machine's, of the file system's and of the GPU's, among the servers that name the same, as
  // the scheduler counts them.
  uint64_t memory_bytes = 0;
  // The machine's memory, or that of the control group which is this process's machine
  // (proto/runtime/files/machine_id.h); 0: what the kernel says of the machine.
  uint64_t machine_bytes = 0;
  uint64_t disk_bytes = 0;
  uint64_t gpu_bytes = 0;
  // Of this machine's start (MachineId of proto/runtime/files/machine_id.h): a copy whose log was
  // open under another one may lack its end. Empty: not known.
  std::string boot_id = {};
  // Which file system `directory` is on (proto/runtime/files/machine_id.h); empty: what is there is
  // not looked at, and not counted where disk_bytes is 0.
  std::string disk_id = {};
  // All memory of the GPU; 0: not known, and not counted where gpu_bytes is 0.
  uint64_t machine_gpu_bytes = 0;
  // Empty: no other server is on this machine.
  std::string machine_id = {};
  // Copies of a shard lie in different zones (proto/core/zone.h); empty: its name.
  std::string zone = {};
  // How long the scheduler may hold a Sync that has nothing to say; a quarter of a lease at most.
  // Stopping waits for the Sync in flight.
  absl::Duration sync_wait = absl::Milliseconds(500);
  // Of everything that waits here: pauses before the next try, pulls, background work, tiers.
  // Outlives the server. Null: one of its own, whose alarms wait for nobody else's.
  Timer* timer = nullptr;
  // Spreads the pauses before the scheduler is tried again; null: they are not spread.
  IdSource* random = IdSource::System();
  // Called, from a thread of its own, when a newer process has registered under this name: this one
  // is never let in again, and should end. May be empty; may be called again while it has not.
  std::function<void(const absl::Status& why)> on_replaced;
};

class Server {
 public:
  // Errors: FAILED_PRECONDITION (another process holds the folder), PERMISSION_DENIED (it cannot be
  // written), INVALID_ARGUMENT, and those of transport->Listen. A scheduler that cannot be reached
  // is none: it is tried again, with a log line.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Stops serving; what is on disk stays. Calls in flight are answered.
  virtual ~Server() = default;

  // Where others reach the data plane.
  virtual std::string address() const = 0;
  virtual std::vector<ServerMetric> Metrics() const = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SERVER_H_
