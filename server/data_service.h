// The data plane of a server: reads messages, finds the job they speak of, hands them on.
#ifndef STRATA_SERVER_DATA_SERVICE_H_
#define STRATA_SERVER_DATA_SERVICE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/job/server_job.h"

namespace strata::server {

// Thread-safe. No bytes crash it; what is wrong with them is the reply.
class DataService : public DataHandler {
 public:
  void Handle(const Caller& caller, DataMethod method, Buffer request, DataReply reply) override;

  void Add(std::shared_ptr<ServerJob> job);
  // The job is gone from here; whoever is using it still finishes with it.
  std::shared_ptr<ServerJob> Remove(JobId job);
  std::shared_ptr<ServerJob> Find(JobId job) const;

  // For metrics, by method.
  struct Counters {
    std::atomic<uint64_t> requests{0};
    std::atomic<uint64_t> errors{0};
    std::atomic<uint64_t> request_bytes{0};
    std::atomic<uint64_t> reply_bytes{0};
    std::atomic<uint64_t> in_flight{0};  // not answered yet
  };
  const std::array<Counters, kDataMethods>& counters() const { return counters_; }

 private:
  absl::StatusOr<std::shared_ptr<ServerJob>> JobOf(const wire::Header& header) const;
  void Pull(Buffer request, DataReply reply);
  void Push(Buffer request, DataReply reply);
  void Prefetch(Buffer request, DataReply reply);
  void Mark(Buffer request, DataReply reply);
  void OpenSession(Buffer request, DataReply reply);

  std::array<Counters, kDataMethods> counters_;
  mutable absl::Mutex mu_;
  std::map<JobId, std::shared_ptr<ServerJob>> jobs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_DATA_SERVICE_H_
