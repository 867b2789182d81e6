#include "tests/server/device_client.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <utility>

#include "proto/runtime/transport/inproc_transport.h"

namespace strata::server {
namespace {

std::vector<uint32_t> Bits(const std::vector<float>& floats) {
  std::vector<uint32_t> bits;
  for (const float f : floats) bits.push_back(std::bit_cast<uint32_t>(f));
  return bits;
}

}  // namespace

DeviceClient::DeviceClient(JobBench& bench)
    : bench_(bench),
      transport_(MakeInProcTransport()),
      listener_(*transport_->Listen("s", &bench.service_)),
      channel_(transport_->Connect({"s", "s"}, Caller::Nobody())) {
  for (const ShardPlan& s : bench.plan().shards) shards_.push_back(s.id);
}

std::shared_ptr<JobBench::Answer> DeviceClient::Call(DataMethod method, Buffer request) {
  auto answer = std::make_shared<JobBench::Answer>();
  channel_->Call(method, std::move(request), absl::InfiniteDuration(),
                 [answer](absl::StatusOr<Buffer> b) { *answer = std::move(b); });
  bench_.pool_.RunAll();
  return answer;
}

absl::Status DeviceClient::StatusOf(DataMethod method, Buffer request) {
  const auto answer = Call(method, std::move(request));
  REQUIRE(answer->has_value());
  return (*answer)->status();
}

std::shared_ptr<const DeviceValues> DeviceClient::Open() {
  const auto answer = Call(
      DataMethod::kOpenSession,
      wire::EncodeOpenSessionRequest(wire::OpenSessionFor(bench_.header(), bench_.identity())));
  REQUIRE(answer->has_value());
  REQUIRE((*answer)->ok());
  const auto& offer = (**answer)->device_values();
  device_ = offer == nullptr ? "host" : offer->device;
  return offer;
}

std::vector<Part> DeviceClient::Parts(uint64_t seed, uint64_t step, LaneNode node) const {
  std::vector<Part> parts;
  for (const auto& [table, rows] : NodeWork(seed, step, node).sums) {
    for (const ShardPlan& shard : bench_.plan().shards) {
      Part& part = parts.emplace_back(Part{TableId(table), shard.id, {}, {}});
      for (const auto& [p, row] : rows) {
        if (p < bench_.First(shard.range) || bench_.Last(shard.range) < p) continue;
        part.keys.push_back(bench_.plan().tables[table].KeyAtPosition(p));
        part.values.insert(part.values.end(), row.begin(), row.end());
      }
    }
  }
  return parts;
}

DeviceValues DeviceClient::There(const std::vector<Part>& parts,
                                 const std::shared_ptr<Memory>& memory) const {
  DeviceValues values;
  values.device = device_;
  values.owner = memory;
  memory->resize(parts.size());
  for (size_t g = 0; g < parts.size(); ++g) {
    std::vector<float>& place = (*memory)[g];
    const bool by_device = parts[g].table == TableId(0);
    if (by_device && place.empty()) place.assign(parts[g].values.size() + 1, kUnwritten);
    values.groups.push_back(by_device ? place.data() : nullptr);
  }
  return values;
}

Buffer DeviceClient::With(const Buffer& message, DeviceValues values) {
  return message.With(std::make_shared<const DeviceValues>(std::move(values)));
}

Buffer DeviceClient::PullRequest(const std::vector<Part>& parts, uint64_t step, uint32_t wait_ms,
                                 const wire::PullExtras& extras) const {
  std::vector<wire::KeyGroup> groups;
  for (const Part& p : parts) {
    if (!extras.ticket) groups.push_back({p.table, p.shard, p.keys});
  }
  return *wire::EncodePullRequest(bench_.header(), Step(step), wait_ms, shards_, groups, extras);
}

DeviceClient::Pushed DeviceClient::Push(uint64_t seed, uint64_t step,
                                        const std::vector<LaneNode>& nodes, bool by_device,
                                        const wire::Ticket& ticket, wire::PushFields fields) const {
  std::vector<std::vector<Part>> parts;
  std::vector<Part> all;
  std::vector<wire::PushContribution> contributions;
  for (const LaneNode node : nodes) parts.push_back(Parts(seed, step, node));
  for (size_t c = 0; c < nodes.size(); ++c) {
    wire::PushContribution& made = contributions.emplace_back();
    made.node = nodes[c];
    made.examples = NodeWork(seed, step, nodes[c]).examples;
    made.ticket = ticket;
    for (const Part& p : parts[c]) {
      const bool there = by_device && p.table == TableId(0);
      const uint32_t dim = bench_.plan().tables[p.table.value].dim();
      made.groups.push_back({p.table, p.shard, p.keys, there ? 0 : dim});
      all.push_back(p);
    }
  }
  auto encoder = wire::PushRequestEncoder::Make(shards_, contributions);
  REQUIRE(encoder.ok());
  Pushed pushed;
  if (by_device) pushed.memory = std::make_shared<Memory>(all.size());
  for (size_t g = 0; g < all.size(); ++g) {
    if (by_device && all[g].table == TableId(0)) {
      (*pushed.memory)[g] = all[g].values;
      (*pushed.memory)[g].push_back(0);  // never empty
    } else {
      std::copy(all[g].values.begin(), all[g].values.end(), encoder->values(g).begin());
    }
  }
  if (by_device) pushed.there = There(all, pushed.memory);
  fields.header = bench_.header();
  fields.sequence = bench_.NextSequence();
  if (bench_.plan().synchronous) fields.step = Step(step);
  pushed.message = encoder->Finish(fields);
  return pushed;
}

void DeviceClient::CheckServed(const JobBench::Answer& answer, const std::vector<Part>& parts,
                               const Memory& memory, const Reference& reference) const {
  const wire::PullReplyView view = bench_.Outcome(answer);
  CHECK((*answer)->device_values() == nullptr);
  REQUIRE(view.outcome == wire::PullOutcome::kServed);
  REQUIRE(view.groups.size() == parts.size());
  for (size_t g = 0; g < parts.size(); ++g) {
    const Part& p = parts[g];
    const bool there = p.table == TableId(0);
    const TableSpec& table = bench_.plan().tables[p.table.value];
    REQUIRE(wire::CheckReplyGroup(view.groups[g], p.table, p.shard, p.keys.size(),
                                  there ? 0 : table.dim())
                .ok());
    std::vector<float> want;
    for (const Key k : p.keys) {
      const auto row = reference.Weights(p.table.value, table.PositionOfKey(k));
      want.insert(want.end(), row.begin(), row.end());
    }
    if (there) want.push_back(kUnwritten);
    std::vector<float> got(want.size());
    if (there) {
      got = memory[g];
    } else {
      for (size_t i = 0; i < got.size(); ++i) got[i] = view.groups[g].value(i);
    }
    CHECK(Bits(want) == Bits(got));
  }
}

}  // namespace strata::server
