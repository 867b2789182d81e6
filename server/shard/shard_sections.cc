// What a shard's files hold beside its rows: ledgers, clocks, filters, pre-images, what is counted.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/core/mutation.h"
#include "server/shard/another_rows.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/file_sections.h"
#include "server/shard/shard.h"

namespace strata::server {

void Shard::FreezeState(FrozenState& out) const {
  if (options_.synchronous || STRATA_MUTATION("window.ledger_not_in_files")) return;
  const std::string ledger = ledger_.Serialize();
  out.sections.push_back({kLedgerSection, options_.range, {ledger.begin(), ledger.end()}});
  const uint64_t counters[2] = {clock().value, barrier_.taken()};
  out.sections.push_back({kCountersSection, options_.range, std::vector<uint8_t>(sizeof counters)});
  std::memcpy(out.sections.back().bytes.data(), counters, sizeof counters);
}

void Shard::FreezeFilters(FrozenState& out) const {
  for (const ShardTable& t : tables_) {
    absl::Status ignored = t.admission().Save([&](PartitionId p, std::span<const uint8_t> bytes) {
      out.sections.push_back(
          {AdmissionFilter::kSection, {p, p}, std::vector<uint8_t>(bytes.begin(), bytes.end())});
      return absl::OkStatus();
    });
  }
}

void Shard::FreezeEarlierCommits(FrozenState& out) const {
  std::vector<uint64_t> commits;
  for (const ShardTable& t : tables_) commits.push_back(t.earlier_commits());
  if (std::all_of(commits.begin(), commits.end(), [](uint64_t c) { return c == 0; })) return;
  out.sections.push_back({kEarlierSection, options_.range, EncodeEarlierCommits(commits)});
}

void Shard::CountFrom(const EarlierCommits& commits) {
  for (ShardTable& t : tables_) {
    const auto found = commits.find(t.spec().id);
    if (found != commits.end()) t.CountFrom(std::max(t.earlier_commits(), found->second));
  }
}

absl::Status Shard::CountFromFile(const storage::ShardFileReader& file) {
  const auto commits = ReadEarlierCommits(file);
  if (!commits.ok()) return commits.status();
  CountFrom(*commits);
  return absl::OkStatus();
}

absl::Status Shard::ReadFilters(const storage::ShardFileReader& file, const RestorePlan* another) {
  const auto load = [&](const storage::Section& section) {
    absl::Status s;
    for (ShardTable& t : tables_) {
      if (!s.ok()) break;
      if (!KeepsPartitions(another, t.spec().id)) continue;
      s = t.admission().Load(section.partitions.first, section.bytes);
    }
    return s;
  };
  return file.ReadSectionsOf(AdmissionFilter::kSection, options_.range, load);
}

absl::Status Shard::FreezePreimages(FrozenState& out) {
  if (!options_.synchronous) return absl::OkStatus();
  const uint64_t resume = ResumeStep().value;
  out.sections.push_back({kServedSection, options_.range, std::vector<uint8_t>(sizeof resume)});
  std::memcpy(out.sections.back().bytes.data(), &resume, sizeof resume);
  if (ResumeStep() != clock() || STRATA_MUTATION("bsp.image_without_preimages"))
    return absl::OkStatus();
  for (ShardTable& t : tables_) {
    PreImages& images = t.preimages();
    if (images.positions().empty()) continue;
    if (absl::Status s = images.BringToHost(); !s.ok()) return s;
    const auto weights = images.all_weights();
    out.preimages.push_back({t.spec().id,
                             {images.positions().begin(), images.positions().end()},
                             {weights.begin(), weights.end()}});
  }
  return absl::OkStatus();
}

void Shard::FreezeRemoved(FrozenState& out) const {
  if (options_.removed == nullptr) return;
  const uint64_t bytes = options_.removed->bytes();
  out.sections.push_back({kRemovedSection, options_.range, std::vector<uint8_t>(sizeof bytes)});
  std::memcpy(out.sections.back().bytes.data(), &bytes, sizeof bytes);
}

absl::Status Shard::ReadRemoved(const storage::ShardFileReader& image) {
  if (options_.removed == nullptr) return absl::OkStatus();
  uint64_t bytes = 0;
  const auto read = [&](const storage::Section& section) {
    if (section.bytes.size() == 8) std::memcpy(&bytes, section.bytes.data(), 8);
    return absl::OkStatus();
  };
  absl::Status s = image.ReadSectionsOf(kRemovedSection, options_.range, read);
  return s.ok() ? options_.removed->StartAt(bytes) : s;
}

absl::Status Shard::ReadState(const storage::ShardFileReader& file) {
  if (options_.synchronous) return absl::OkStatus();
  const auto read_ledger = [&](const storage::Section& section) {
    auto ledger = WindowLedger::Parse(absl::string_view(
        reinterpret_cast<const char*>(section.bytes.data()), section.bytes.size()));
    if (ledger.ok()) ledger_.Merge(*ledger);
    return ledger.status();
  };
  absl::Status s = file.ReadSectionsOf(kLedgerSection, options_.range, read_ledger);
  if (!s.ok()) return s;
  const auto read_counters = [&](const storage::Section& section) -> absl::Status {
    uint64_t counters[2];
    if (section.bytes.size() != sizeof counters) {
      return absl::DataLossError("shard counters: damaged bytes");
    }
    std::memcpy(counters, section.bytes.data(), sizeof counters);
    SetClock(Step(std::max(clock().value, counters[0])), false);
    barrier_ = CutBarrier(options_.lanes, std::max(barrier_.taken(), counters[1]));
    return absl::OkStatus();
  };
  return file.ReadSectionsOf(kCountersSection, options_.range, read_counters);
}

absl::Status Shard::ReadPreimageBlocks(const storage::ShardFileReader& image) {
  for (ShardTable& t : tables_) {
    const uint32_t dim = t.layout().dim;
    absl::Status s = image.ReadPreImages(
        t.spec().id, options_.range, [&](const storage::PreImages& block) -> absl::Status {
          if (block.weights.size() != block.positions.size() * dim) {
            return absl::DataLossError("pre-images: wrong number of weights");
          }
          float* out = t.preimages().Extend(block.positions);
          std::memcpy(out, block.weights.data(), block.weights.size() * 4);
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
  }
  uint64_t resume = image.header().clock.value + 1;
  const auto read = [&](const storage::Section& section) {
    if (section.bytes.size() == 8) std::memcpy(&resume, section.bytes.data(), 8);
    return absl::OkStatus();
  };
  absl::Status s = image.ReadSectionsOf(kServedSection, options_.range, read);
  if (!s.ok()) return s;
  SetClock(image.header().clock, resume == image.header().clock.value);
  return absl::OkStatus();
}

}  // namespace strata::server
