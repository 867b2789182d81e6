#include "worker/client/exchange.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "ops/codec.h"
#include "proto/wire/message_limits.h"
#include "worker/step/router.h"

namespace strata {
namespace {

std::span<const Key> AsKeys(std::span<const uint64_t> keys) {
  static_assert(sizeof(Key) == sizeof(uint64_t));
  return {reinterpret_cast<const Key*>(keys.data()), keys.size()};
}

constexpr uint32_t kDense = ModelTables::kDenseTable;

// body(i) for each i < n, by the team where they copy so many bytes together that it pays.
void ForEach(size_t n, size_t bytes, ops::Parallel* parallel,
             const std::function<void(size_t)>& body) {
  constexpr size_t kManyBytes = size_t{1} << 20;
  if (parallel != nullptr && bytes >= kManyBytes) return parallel->For(n, body);
  for (size_t i = 0; i < n; ++i) body(i);
}

// What a pull takes at most; the server counts all of it against --request-bytes.
struct PullSize {
  size_t request = 0;  // bytes
  size_t reply = 0;    // bytes
  size_t keys = 0;
  size_t groups = 0;

  size_t bytes() const { return request + keys * sizeof(Position) + reply; }
  void Add(const PullSize& more) {
    request += more.request;
    reply += more.reply;
    keys += more.keys;
    groups += more.groups;
  }
};

absl::Status TooLarge(const char* what, size_t bytes, size_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a ", what, " of ", bytes, " bytes, the limit of a message is ", limit));
}

// No message carries what one shard has of the step: `dense`, of the dense layers alone.
absl::Status WithRemedy(const absl::Status& too_large, bool dense) {
  return absl::ResourceExhaustedError(
      dense ? absl::StrCat("a tensor of the model lies in one shard, which goes in one message: ",
                           too_large.message(),
                           "; make its layers narrower (spec.model.hidden and the like)")
            : absl::StrCat(
                  "what a step needs of one shard goes in one message: ", too_large.message(),
                  "; set a smaller spec.training.batchSize, a larger "
                  "spec.storage.shardsPerServer, or more servers"));
}

}  // namespace

Exchange::Exchange(const ModelTables& tables, const ShardMap& shards, const Limits& limits)
    : tables_(tables), shards_(shards), limits_(limits), push_dims_(PushDims(tables.tables)) {
  for (const TableSpec& table : tables_.tables) row_dims_.push_back(table.dim());
  tensor_row_.resize(tables_.tensor_count());
  std::vector<size_t> first_row;
  for (const TensorSpec& t : tables_.tables[kDense].tensors) {
    first_row.push_back(dense_keys_.size());
    for (uint64_t r = 0; r < t.Rows(ModelTables::kDenseRowDim); ++r) {
      dense_keys_.push_back(t.first.value + r);
    }
  }
  for (size_t k = 0; k < tensor_row_.size(); ++k) {
    tensor_row_[k] = first_row[tables_.tensor_order[k]];
  }
  for (uint32_t s = 0; s < shards_.servers(); ++s) own_.push_back(shards_.ShardsOf(s));
  for (const ShardRun& run : SplitByShard(shards_, dense_keys_)) {
    dense_runs_.push_back(
        {kDense, run.shard, run.begin, run.end, run.begin * ModelTables::kDenseRowDim});
  }
}

std::vector<const float*> Exchange::TensorsIn(const float* dense) const {
  std::vector<const float*> out;
  for (size_t row : tensor_row_) out.push_back(dense + row * ModelTables::kDenseRowDim);
  return out;
}

std::vector<float*> Exchange::TensorsIn(float* dense) const {
  std::vector<float*> out;
  for (size_t row : tensor_row_) out.push_back(dense + row * ModelTables::kDenseRowDim);
  return out;
}

void Exchange::Prepare(const KeyList& keys, ParameterBlock* out) const {
  out->rows.resize(FloatsOf(keys.runs, row_dims_));
  out->dense.resize(dense_keys_.size() * ModelTables::kDenseRowDim);
}

absl::Status Exchange::PrepareThere(const KeyList& keys, device::RowMemory* memory,
                                    ParameterBlock* out) const {
  auto rows = memory->Take(FloatsOf(keys.runs, row_dims_));
  if (!rows.ok()) return rows.status();
  out->rows_there = *std::move(rows);
  out->dense.resize(dense_keys_.size() * ModelTables::kDenseRowDim);
  return absl::OkStatus();
}

bool Exchange::MayStayThere(const wire::PullCodecs& pulls) const {
  if (counts()) return false;
  for (const TableSpec& table : tables_.tables) {
    if (table.kind == TableKind::kDense) continue;
    if (pulls.Of(table.id) != wire::ValueCodec::kFloat32) return false;
  }
  return true;
}

std::vector<Exchange::Run> Exchange::RunsOf(Shards shards, const KeyList& keys,
                                            std::span<const uint32_t> dims, bool dense) const {
  const auto asked = [&](ShardId shard) {
    return std::binary_search(shards.begin(), shards.end(), shard);
  };
  std::vector<Run> runs;
  ForRuns(keys.runs, dims, [&](const KeyRun& of_table, size_t first_float) {
    const size_t dim = dims[of_table.table];
    for (const ShardRun& run :
         SplitByShard(shards_, keys.positions.subspan(of_table.first, of_table.count))) {
      if (!asked(run.shard)) continue;
      runs.push_back({of_table.table, run.shard, of_table.first + run.begin,
                      of_table.first + run.end, first_float + run.begin * dim});
    }
  });
  if (!dense) return runs;
  for (const Run& run : dense_runs_) {
    if (asked(run.shard)) runs.push_back(run);
  }
  return runs;
}

absl::Status Exchange::CheckRuns(const KeyList& keys) {
  size_t listed = 0;
  for (const KeyRun& run : keys.runs) listed += run.count;
  if (listed == keys.keys.size()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("a list of ", keys.keys.size(), " keys, of which ", listed, " have a table"));
}

std::vector<wire::KeyGroup> Exchange::KeyGroups(std::span<const Run> runs,
                                                const KeyList& keys) const {
  std::vector<wire::KeyGroup> groups;
  for (const Run& run : runs) {
    const std::span<const uint64_t> all =
        run.table == kDense ? std::span<const uint64_t>(dense_keys_) : keys.keys;
    groups.push_back(
        {TableId(run.table), run.shard, AsKeys(all.subspan(run.begin, run.end - run.begin))});
  }
  return groups;
}

wire::Ticket Exchange::Verified(std::span<const Run> runs, const KeyList& keys,
                                const wire::Ticket& ticket) const {
  if (!ticket) return {};
  uint64_t count = 0;
  for (const Run& run : runs) count += run.end - run.begin;
  if (count != ticket.keys) return {};
  return wire::FingerprintOf(KeyGroups(runs, keys)) == ticket.fingerprint ? ticket : wire::Ticket();
}

// Were all keys of the step this server's, and all rows as wide as the widest.
size_t Exchange::MostPullBytes(Shards own, const KeyList& keys, size_t fixed) const {
  const uint32_t dim = *std::max_element(row_dims_.begin(), row_dims_.end());
  const size_t key = sizeof(Key) + sizeof(Position) +
                     std::max(wire::ValueBytes(wire::ValueCodec::kFloat32, dim),
                              wire::ValueBytes(wire::ValueCodec::kInt8, dim));
  const size_t groups = own.size() * row_dims_.size();
  return 2 * fixed + own.size() * wire::kMaxShardNumberBytes +
         2 * groups * wire::MaxGroupBytes(0, 0) + (keys.keys.size() + dense_keys_.size()) * key;
}

size_t Exchange::DenseBytes(ShardId shard) const {
  size_t bytes = 0;
  for (const Run& run : dense_runs_) {
    if (run.shard != shard) continue;
    bytes +=
        (run.end - run.begin) * wire::ValueBytes(wire::ValueCodec::kFloat32, row_dims_[kDense]);
  }
  return bytes;
}

absl::StatusOr<std::vector<Exchange::Shards>> Exchange::SplitPull(uint32_t server,
                                                                  const KeyList& keys, bool dense,
                                                                  const wire::PullCodecs& codecs,
                                                                  Rows rows) const {
  const Shards own = own_[server];
  const size_t fixed = wire::kMaxFixedBytes + codecs.of_table.size() * wire::kMaxEnumBytes;
  if (MostPullBytes(own, keys, fixed) <= limits_.pull_bytes &&
      own.size() * row_dims_.size() <= wire::kMaxGroups) {
    return std::vector<Shards>{own};
  }
  const PullSize none = {fixed, fixed, 0};
  std::vector<PullSize> sizes(own.size(), {wire::kMaxShardNumberBytes, 0, 0});
  for (const Run& run : RunsOf(own, keys, row_dims_, dense)) {
    const bool is_dense = run.table == kDense;
    const uint32_t dim = !is_dense && rows == Rows::kThere ? 0 : row_dims_[run.table];
    const wire::ValueCodec codec =
        is_dense ? wire::ValueCodec::kFloat32 : codecs.Of(TableId(run.table));
    const size_t count = run.end - run.begin;
    PullSize& size = sizes[std::lower_bound(own.begin(), own.end(), run.shard) - own.begin()];
    size.request += wire::MaxGroupBytes(count, 0);
    size.reply += wire::MaxGroupBytes(0, 0) + count * wire::ValueBytes(codec, dim);
    size.keys += count;
    ++size.groups;
  }
  std::vector<Shards> parts;
  size_t begin = 0;
  PullSize part = none;
  for (size_t i = 0; i < own.size(); ++i) {
    PullSize alone = none;
    alone.Add(sizes[i]);
    if (const size_t bytes = std::max(alone.request, alone.reply); bytes > limits_.pull_bytes) {
      return WithRemedy(TooLarge("pull", bytes, limits_.pull_bytes),
                        DenseBytes(own[i]) > limits_.pull_bytes);
    }
    part.Add(sizes[i]);
    if (i == begin || (part.bytes() <= limits_.pull_bytes && part.groups <= wire::kMaxGroups)) {
      continue;
    }
    parts.push_back(own.subspan(begin, i - begin));
    begin = i;
    part = alone;
  }
  parts.push_back(own.subspan(begin));
  return parts;
}

absl::StatusOr<Buffer> Exchange::EncodePull(Shards shards, const wire::Header& header, Step step,
                                            uint32_t wait_ms, const KeyList& keys, bool dense,
                                            const wire::PullExtras& extras) const {
  if (absl::Status s = CheckRuns(keys); !s.ok()) return s;
  std::vector<wire::KeyGroup> groups;
  if (!extras.ticket) groups = KeyGroups(RunsOf(shards, keys, row_dims_, dense), keys);
  return wire::EncodePullRequest(header, step, wait_ms, shards, groups, extras);
}

std::shared_ptr<const DeviceValues> Exchange::PlacesOfPull(
    Shards shards, const KeyList& keys, bool dense, const std::string& device,
    const std::shared_ptr<float>& rows) const {
  auto values = std::make_shared<DeviceValues>();
  values->device = device;
  values->owner = rows;
  bool any = false;
  for (const Run& run : RunsOf(shards, keys, row_dims_, dense)) {
    const bool there = run.table != kDense;
    values->groups.push_back(there ? rows.get() + run.first_float : nullptr);
    any |= there;
  }
  return any ? values : nullptr;
}

std::vector<Exchange::Part> Exchange::ShareOf(Shards shards, const KeyList& keys) const {
  std::vector<Part> share;
  for (const Run& run : RunsOf(shards, keys, row_dims_, false)) {
    const size_t count = run.end - run.begin;
    share.push_back({count, run.first_float, count * row_dims_[run.table]});
  }
  return share;
}

absl::StatusOr<Buffer> Exchange::EncodePrefetch(uint32_t server, const wire::Header& header,
                                                Step step, const KeyList& keys, bool dense) const {
  if (absl::Status s = CheckRuns(keys); !s.ok()) return s;
  return wire::EncodePrefetchRequest(header, step, own_[server],
                                     KeyGroups(RunsOf(own_[server], keys, row_dims_, dense), keys));
}

absl::StatusOr<wire::Ticket> Exchange::DecodePrefetch(uint32_t server,
                                                      std::span<const uint8_t> reply,
                                                      const KeyList& keys, bool dense) const {
  auto parsed = wire::ParsePrefetchReply(reply);
  if (!parsed.ok()) return parsed.status();
  return Verified(RunsOf(own_[server], keys, row_dims_, dense), keys, parsed->ticket);
}

absl::StatusOr<Exchange::PullAnswer> Exchange::DecodePull(
    Shards shards, std::span<const uint8_t> reply, const KeyList& keys, bool dense,
    ParameterBlock* out, const wire::PullCodecs& codecs, Rows rows, ops::Parallel* parallel) const {
  auto view = wire::ParsePullReply(reply);
  if (!view.ok()) return view.status();
  const std::vector<Run> runs = RunsOf(shards, keys, row_dims_, dense);
  const PullAnswer answer{view->state, view->outcome, Verified(runs, keys, view->ticket)};
  if (view->outcome != wire::PullOutcome::kServed) return answer;
  if (runs.size() != view->groups.size()) {
    return absl::InternalError(absl::StrCat("the server of shard ", shards.front().value,
                                            " answered ", view->groups.size(),
                                            " groups to a pull of ", runs.size()));
  }
  const auto dim_of = [&](const Run& run) -> uint32_t {
    return run.table != kDense && rows == Rows::kThere ? 0 : row_dims_[run.table];
  };
  const auto codec_of = [&](const Run& run) {
    return run.table == kDense ? wire::ValueCodec::kFloat32 : codecs.Of(TableId(run.table));
  };
  std::vector<absl::Status> checked(runs.size());
  ForEach(runs.size(), reply.size(), parallel, [&](size_t i) {
    const Run& run = runs[i];
    checked[i] = wire::CheckReplyGroup(view->groups[i], TableId(run.table), run.shard,
                                       run.end - run.begin, dim_of(run), codec_of(run));
  });
  for (const absl::Status& s : checked) {
    if (!s.ok()) return s;
  }
  ForEach(runs.size(), reply.size(), parallel, [&](size_t i) {
    const Run& run = runs[i];
    const uint32_t dim = dim_of(run);
    if (dim == 0) return;
    std::vector<float>& to = run.table == kDense ? out->dense : out->rows;
    ops::DecodeRows(static_cast<ops::RowCodec>(codec_of(run)), view->groups[i].value_bytes.data(),
                    run.end - run.begin, dim, to.data() + run.first_float);
  });
  return answer;
}

absl::StatusOr<Buffer> Exchange::EncodePushPart(Shards shards, const wire::PushFields& fields,
                                                std::span<const Contribution> contributions,
                                                const wire::Ticket& ticket,
                                                const std::string& device,
                                                ops::Parallel* parallel) const {
  std::vector<wire::PushContribution> parts;
  std::vector<const float*> sources;  // null: there
  auto values = std::make_shared<DeviceValues>();
  auto owners = std::make_shared<std::vector<std::shared_ptr<const float>>>();
  for (const auto& [node, gradient] : contributions) {
    owners->push_back(gradient->rows_there);
    wire::PushContribution part;
    part.node = node;
    part.examples = gradient->examples;
    part.ticket = ticket;
    const KeyList keys{gradient->keys, gradient->positions, gradient->runs};
    if (absl::Status s = CheckRuns(keys); !s.ok()) return s;
    for (const Run& run : RunsOf(shards, keys, push_dims_, !gradient->dense.empty())) {
      const bool is_dense = run.table == kDense;
      const bool there = !is_dense && gradient->rows_there != nullptr;
      const uint32_t dim = push_dims_[run.table];
      const std::span<const uint64_t> all =
          is_dense ? std::span<const uint64_t>(dense_keys_) : keys.keys;
      part.groups.push_back({TableId(run.table), run.shard,
                             AsKeys(all.subspan(run.begin, run.end - run.begin)), there ? 0 : dim});
      sources.push_back(
          there ? nullptr : (is_dense ? gradient->dense : gradient->rows).data() + run.first_float);
      values->groups.push_back(
          there ? const_cast<float*>(gradient->rows_there.get()) + run.first_float : nullptr);
    }
    parts.push_back(std::move(part));
  }
  auto encoder = wire::PushRequestEncoder::Make(shards, parts);
  if (!encoder.ok()) return encoder.status();
  bool any_there = false;
  size_t bytes = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    any_there |= sources[i] == nullptr;
    bytes += encoder->bytes(i).size();
  }
  ForEach(sources.size(), bytes, parallel, [&](size_t i) {
    if (sources[i] == nullptr) return;
    const std::span<float> place = encoder->values(i);
    std::memcpy(place.data(), sources[i], place.size() * sizeof(float));
    encoder->Seal(i);
  });
  const Buffer request = encoder->Finish(fields);
  if (!any_there) return request;
  values->device = device;
  values->owner = std::move(owners);
  return request.With(std::move(values));
}

absl::StatusOr<std::vector<Buffer>> Exchange::EncodePush(
    uint32_t server, const wire::PushFields& fields, std::span<const Contribution> contributions,
    const wire::Ticket& ticket, const std::string& device, ops::Parallel* parallel) const {
  std::vector<Buffer> out;
  // Halve the shards until every part fits; almost always the first try does.
  std::vector<Shards> todo = {own_[server]};
  while (!todo.empty()) {
    const Shards shards = todo.back();
    todo.pop_back();
    const bool whole = shards.size() == own_[server].size();
    auto part = EncodePushPart(shards, fields, contributions, whole ? ticket : wire::Ticket(),
                               device, parallel);
    if (part.ok() && part->size() > limits_.push_bytes) {
      part = TooLarge("push", part->size(), limits_.push_bytes);
    }
    if (part.ok()) {
      out.push_back(*std::move(part));
    } else if (absl::IsResourceExhausted(part.status()) && shards.size() > 1) {
      todo.push_back(shards.subspan(shards.size() / 2));
      todo.push_back(shards.first(shards.size() / 2));
    } else {
      const bool dense = DenseBytes(shards.front()) > limits_.push_bytes;
      return absl::IsResourceExhausted(part.status()) ? WithRemedy(part.status(), dense)
                                                      : part.status();
    }
  }
  return out;
}

}  // namespace strata
