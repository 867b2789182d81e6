// Blocking access to a job's parameters: pulls and pushes that go to every server and wait.
#ifndef STRATA_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define STRATA_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/timer.h"
#include "proto/wire/message.h"
#include "worker/client/blocking_calls.h"
#include "worker/client/cancel_flag.h"
#include "worker/client/exchange.h"
#include "worker/client/push_sequences.h"
#include "worker/client/server_links.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/training_stats.h"
#include "worker/step/key_runs.h"

namespace strata {

struct ParameterClientOptions {
  const Exchange* exchange = nullptr;  // outlives the client
  ServerLinks* links = nullptr;        // outlives the client
  Timer* timer = Timer::Real();        // outlives the client
  wire::Header header;
  JobIdentity identity;  // which job header.job is
  // Of the header's session; outlives the client. Needed for Push and Mark only.
  SequenceCounter* sequences = nullptr;
  // How long one try may take; a try that fails is repeated with backoff.
  absl::Duration call_timeout = absl::Seconds(20);
  // Give up after so long without any success; infinite for training.
  absl::Duration give_up_after = absl::InfiniteDuration();
  // How rows are written in replies to Pull.
  wire::PullCodecs codecs = {};
  // Pulls ask for tickets, and a push of the keys of the last pull names them. Needs a session.
  bool tickets = false;
  // Rows of Pull and Push stay in this memory while every server takes them there: pulls give
  // ParameterBlock::rows_there then. Null: they go in messages. Outlives the client; with it
  // `tables`, the job's, and `stats` are needed, the codecs are float32, and a push has nothing
  // beside gradients.
  device::RowMemory* memory = nullptr;
  std::span<const TableSpec> tables = {};  // by number; they outlive the client
  TrainingStats* stats = nullptr;
  // When it is set, calls return CANCELLED at once. Outlives the client.
  CancelFlag* cancelled = nullptr;
};

// One thread at a time; several clients may share links and exchange.
class ParameterClient {
 public:
  explicit ParameterClient(const ParameterClientOptions& options);

  // Weights of `keys` and of the dense table: after commit step - 1 (waits for it), or, with step
  // 0, whatever is committed now. FAILED_PRECONDITION when the step is older than what is kept.
  absl::Status Pull(Step step, const KeyList& keys, ParameterBlock* out);

  // Async: one window's gradient to every server; returns when all have applied it (or had before).
  // `fields` without header and sequence, which this fills. `theirs`, if not null, receives whether
  // a server had the window from somebody else: no call was made again that may have been carried
  // out before, and one was answered by "I have it". After such a call that cannot be told, and is
  // taken for our own.
  absl::Status Push(wire::PushFields fields, std::shared_ptr<const Gradient> gradient,
                    bool* theirs = nullptr);

  // Async: the lane's marker of a cut, to every server.
  absl::Status Mark(LaneId lane, uint64_t cut, TaskId task, uint64_t window);

 private:
  absl::Status PullOnce(Step step, const KeyList& keys, bool there, ParameterBlock* out);
  absl::Status PushOnce(const wire::PushFields& fields, std::shared_ptr<const Gradient> gradient,
                        bool* theirs);
  void CountThere(Exchange::Shards shards, const KeyList& keys) const;
  // Whether a push of these rows may name the tickets of the last pull.
  bool AsPulled(const Gradient& gradient) const;

  const ParameterClientOptions options_;
  BlockingCalls calls_;
  std::vector<uint64_t> pulled_;  // positions of the last pull, and their tables
  KeyRuns pulled_runs_;
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_PARAMETER_CLIENT_H_
