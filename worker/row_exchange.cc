#include "worker/row_exchange.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "proto/core/device_values.h"
#include "worker/gradient_there.h"

namespace strata {
namespace {

// The values of a message are of 4 bytes each and no more than the rows' own.
bool MayStayThere(const TrainingPlan& plan, const Exchange& exchange) {
  return plan.pull_codec == wire::ValueCodec::kFloat32 && exchange.push_dim() == exchange.row_dim();
}

}  // namespace

RowExchange::RowExchange(const TrainingPlan* plan, const Exchange* exchange,
                         device::RowMemory* memory, ops::Parallel* parallel, TrainingStats* stats)
    : plan_(plan),
      exchange_(exchange),
      memory_(memory != nullptr && MayStayThere(*plan, *exchange) ? memory : nullptr),
      parallel_(parallel),
      stats_(stats),
      takes_(plan->shards.servers()) {}

void RowExchange::OnOpened(uint32_t server, const Buffer& reply) {
  const auto& offer = reply.device_values();
  takes_[server] = memory_ != nullptr && offer != nullptr && offer->device == memory_->device();
}

void RowExchange::OnAllOpen() {
  if (decided_) return;
  decided_ = true;
  there_ = std::find(takes_.begin(), takes_.end(), false) == takes_.end();
}

void RowExchange::Count(uint32_t server, const KeyList& keys) const {
  uint64_t rows = 0;
  for (const auto& [begin, end] : exchange_->ShareOf(server, keys)) rows += end - begin;
  stats_->OnRowsThere(rows);
}

absl::StatusOr<Buffer> RowExchange::EncodePull(uint32_t server, const wire::Header& header,
                                               Step step, uint32_t wait_ms, const CohortData& data,
                                               const wire::PullExtras& extras) const {
  const bool weights = !data.lanes.empty();
  auto request = exchange_->EncodePull(server, header, step, wait_ms, data.keys(), weights, extras);
  if (!request.ok() || !weights || !there_ || !takes_[server]) return request;
  // Where the call breaks here and the pull goes again, the server may still write for the first
  // one: the same, as the weights of a step are.
  auto places = exchange_->PlacesOfPull(server, data.keys(), weights, memory_->device(),
                                        data.weights.rows_there);
  return places == nullptr ? request : request->With(std::move(places));
}

absl::StatusOr<Exchange::PullAnswer> RowExchange::DecodePull(uint32_t server, Exchange::Rows rows,
                                                             const Buffer& reply,
                                                             CohortData* data) const {
  const bool weights = !data->lanes.empty();
  const bool written_there = rows == Exchange::Rows::kThere;
  // A server that takes no rows there sends them in its reply: they go up from here.
  const bool upload = weights && there_ && !written_there;
  ParameterBlock& block = data->weights;
  const size_t dim = exchange_->row_dim();
  if (upload) block.rows.resize(data->all.keys.size() * dim);
  auto answer = exchange_->DecodePull(server, reply.span(), data->keys(), weights, &block,
                                      plan_->pull_codec, rows, parallel_);
  if (!answer.ok() || answer->outcome != wire::PullOutcome::kServed) return answer;
  if (written_there) Count(server, data->keys());
  if (!upload) return answer;
  for (const auto& [begin, end] : exchange_->ShareOf(server, data->keys())) {
    const absl::Status s = memory_->Upload(block.rows.data() + begin * dim, (end - begin) * dim,
                                           block.rows_there.get() + begin * dim);
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
    if (gradient.rows_there != nullptr && takes_[server]) {
      Count(server, {gradient.keys, gradient.positions});
    } else if (gradient.rows_there != nullptr) {
      auto here = BringHere(plan_->tables.tables[0], memory_, gradient);
      if (!here.ok()) return here.status();
      sum = std::make_shared<Gradient>(*std::move(here));
    }
    contributions.emplace_back(node, *std::move(sum));
  }
  return exchange_->EncodePush(server, fields, contributions, ticket,
                               memory_ == nullptr ? "" : memory_->device(), parallel_);
}

}  // namespace strata
