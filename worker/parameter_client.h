// Blocking access to a job's parameters: pulls and pushes that go to every server, wait, and retry.
#ifndef STRATA_WORKER_PARAMETER_CLIENT_H_
#define STRATA_WORKER_PARAMETER_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/message.h"
#include "proto/core/table_spec.h"
#include "worker/device/row_memory.h"
#include "worker/exchange.h"
#include "worker/push_sequences.h"
#include "worker/server_links.h"
#include "worker/training_stats.h"

namespace strata {

struct ParameterClientOptions {
  const Exchange* exchange = nullptr;  // outlives the client
  ServerLinks* links = nullptr;        // outlives the client
  wire::Header header;
  // Of the header's session; outlives the client. Needed for Push and Mark only.
  SequenceCounter* sequences = nullptr;
  // How long one try may take; a try that fails is repeated with backoff.
  absl::Duration call_timeout = absl::Seconds(20);
  // Give up after so long without any success; infinite for training.
  absl::Duration give_up_after = absl::InfiniteDuration();
  // How rows are written in replies to Pull.
  wire::ValueCodec codec = wire::ValueCodec::kFloat32;
  // Pulls ask for tickets, and a push of the keys of the last pull names them. Needs a session.
  bool tickets = false;
  // Rows of Pull and Push stay in this memory while every server takes them there: pulls give
  // ParameterBlock::rows_there then. Null: they go in messages. Outlives the client; with it
  // `features`, the rows' table, and `stats` are needed, the codec is float32, and a push has
  // nothing beside gradients.
  device::RowMemory* memory = nullptr;
  const TableSpec* features = nullptr;
  TrainingStats* stats = nullptr;
  // Checked between tries; when it turns true, calls return CANCELLED.
  const std::atomic<bool>* cancelled = nullptr;
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
  // a server had the window from somebody else: all calls were answered at once, and one by "I have
  // it". After a try that failed that cannot be told, and is taken for our own.
  absl::Status Push(wire::PushFields fields, std::shared_ptr<const Gradient> gradient,
                    bool* theirs = nullptr);

  // Async: the lane's marker of a cut, to every server.
  absl::Status Mark(LaneId lane, uint64_t cut, TaskId task, uint64_t window);

 private:
  // One request per entry, retried until each was answered OK and `accept` returned true for it.
  struct Request {
    uint32_t server;
    DataMethod method;
    Buffer bytes;
    // What is sent instead once `bytes`, which name a ticket, have failed: the same with keys.
    std::function<absl::StatusOr<std::vector<Buffer>>()> with_keys = nullptr;
  };
  // OK: answered; UNAVAILABLE: try again; else final.
  using Accept = std::function<absl::Status(size_t request, const Buffer& reply)>;
  absl::Status CallAll(std::vector<Request> requests, const Accept& accept);
  absl::Status SendKeys(size_t index, std::vector<Request>& requests, std::vector<size_t>& again);
  absl::Status Open(uint32_t server);
  bool AllTakeRowsThere();
  absl::Status PullOnce(Step step, const KeyList& keys, bool there, ParameterBlock* out);
  absl::Status PushOnce(const wire::PushFields& fields, std::shared_ptr<const Gradient> gradient,
                        bool* theirs);
  void CountThere(uint32_t server, const KeyList& keys) const;
  bool Cancelled() const {
    return options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed);
  }

  // Tickets of the last pull, where its positions are those of `positions`; they are used up.
  std::vector<wire::Ticket> TakeTickets(std::span<const uint64_t> positions);

  const ParameterClientOptions options_;
  std::vector<uint64_t> pulled_;       // positions of the last pull
  std::vector<wire::Ticket> tickets_;  // by server; of that pull
  std::vector<bool> open_;
  std::vector<bool> takes_;   // by server: rows in options_.memory, as it said when it was opened
  bool offer_ended_ = false;  // in the last CallAll a server that was sent such rows takes none now
  bool tried_again_ = false;  // in the last CallAll a call failed that may have been received
};

}  // namespace strata

#endif  // STRATA_WORKER_PARAMETER_CLIENT_H_
