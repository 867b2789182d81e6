#include "worker/bsp/row_exchange.h"

#include <memory>
#include <utility>

#include "worker/device/gradient_there.h"
#include "worker/step/key_runs.h"

namespace strata {

RowExchange::RowExchange(const TrainingPlan* plan, const Exchange* exchange,
                         device::RowMemory* memory, const SessionMachine* session,
                         ops::Parallel* parallel, TrainingStats* stats)
    : plan_(plan),
      exchange_(exchange),
      memory_(memory != nullptr && exchange->MayStayThere(plan->pull_codecs) ? memory : nullptr),
      session_(session),
      parallel_(parallel),
      stats_(stats) {}

void RowExchange::OnAllOpen() {
  if (decided_) return;
  decided_ = true;
  there_ = memory_ != nullptr && session_->all_take_rows();
}

void RowExchange::Count(Exchange::Shards shards, const KeyList& keys) const {
  uint64_t rows = 0;
  for (const Exchange::Part& part : exchange_->ShareOf(shards, keys)) rows += part.keys;
  stats_->OnRowsThere(rows);
}

absl::StatusOr<std::vector<Exchange::Shards>> RowExchange::SplitPull(uint32_t server,
                                                                     const CohortData& data) const {
  const auto rows = WritesThere(server, data) ? Exchange::Rows::kThere : Exchange::Rows::kInReply;
  return exchange_->SplitPull(server, data.keys(), !data.lanes.empty(), plan_->pull_codecs, rows);
}

absl::StatusOr<Buffer> RowExchange::EncodePull(uint32_t server, Exchange::Shards shards,
                                               const wire::Header& header, Step step,
                                               uint32_t wait_ms, const CohortData& data,
                                               const wire::PullExtras& extras) const {
  const bool weights = !data.lanes.empty();
  auto request = exchange_->EncodePull(shards, header, step, wait_ms, data.keys(), weights, extras);
  if (!request.ok() || !WritesThere(server, data)) return request;
  // Where the call breaks here and the pull goes again, the server may still write for the first
  // one: the same, as the weights of a step are.
  auto places = exchange_->PlacesOfPull(shards, data.keys(), weights, memory_->device(),
                                        data.weights.rows_there);
  return places == nullptr ? request : request->With(std::move(places));
}

absl::StatusOr<Exchange::PullAnswer> RowExchange::DecodePull(Exchange::Shards shards,
                                                             Exchange::Rows rows,
                                                             const Buffer& reply,
                                                             CohortData* data) const {
  const bool weights = !data->lanes.empty();
  const bool written_there = rows == Exchange::Rows::kThere;
  // A server that takes no rows there sends them in its reply: they go up from here.
  const bool upload = weights && there_ && !written_there;
  ParameterBlock& block = data->weights;
  if (upload) block.rows.resize(FloatsOf(data->all.runs, exchange_->row_dims()));
  auto answer = exchange_->DecodePull(shards, reply.span(), data->keys(), weights, &block,
                                      plan_->pull_codecs, rows, parallel_);
  if (!answer.ok() || answer->outcome != wire::PullOutcome::kServed) return answer;
  if (written_there) Count(shards, data->keys());
  if (!upload) return answer;
  for (const Exchange::Part& part : exchange_->ShareOf(shards, data->keys())) {
    const absl::Status s = memory_->Upload(block.rows.data() + part.first_float, part.floats,
                                           block.rows_there.get() + part.first_float);
    if (!s.ok()) return s;
  }
  return answer;
}

absl::StatusOr<std::vector<Buffer>> RowExchange::EncodePush(uint32_t server,
                                                            const wire::PushFields& fields,
                                                            std::span<const LaneNode> nodes,
                                                            LaneSums* sums,
                                                            const wire::Ticket& ticket) const {
  std::vector<Exchange::Contribution> contributions;
  for (const LaneNode node : nodes) {
    auto sum = sums->Sum(fields.step, node);
    if (!sum.ok()) return sum.status();
    const Gradient& gradient = **sum;
    if (gradient.rows_there != nullptr && session_->takes_rows(server)) {
      Count(exchange_->ShardsOf(server), {gradient.keys, gradient.positions, gradient.runs});
    } else if (gradient.rows_there != nullptr) {
      auto here = BringHere(plan_->tables.tables, memory_, gradient);
      if (!here.ok()) return here.status();
      sum = std::make_shared<Gradient>(*std::move(here));
    }
    contributions.emplace_back(node, *std::move(sum));
  }
  return exchange_->EncodePush(server, fields, contributions, ticket,
                               memory_ == nullptr ? "" : memory_->device(), parallel_);
}

}  // namespace strata
