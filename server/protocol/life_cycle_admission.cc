#include "server/protocol/life_cycle_admission.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/counter_random.h"
#include "proto/core/position.h"

namespace strata::server {
namespace {

constexpr uint64_t kAdmissionSalt = 0x61646d697373696full;  // a stream of its own

size_t WidthFor(uint64_t bytes, uint32_t rows) {
  return std::bit_floor(std::max<uint64_t>(bytes / rows, 1));
}

}  // namespace

AdmissionFilter::AdmissionFilter(const AdmissionRules& rules, TableId table, uint64_t seed,
                                 Partitioning partitioning)
    : rules_(rules),
      table_(table),
      seed_(seed),
      partitioning_(partitioning),
      most_entries_(std::max<uint64_t>(rules.partition_bytes / kExactEntryBytes, 2)),
      width_(WidthFor(rules.partition_bytes, kSketchRows)) {}

bool AdmissionFilter::Admit(Position position, Key key, uint64_t step) {
  switch (rules_.type) {
    case AdmissionType::kAlways:
      return true;
    case AdmissionType::kProbability: {
      const uint64_t stream = ops::RowStream(seed_ ^ kAdmissionSalt, table_.value, key.value);
      const uint64_t bits = ops::MixBits(stream + step * ops::kGoldenGamma);
      return static_cast<float>(bits >> 40) * 0x1p-24f < rules_.probability;
    }
    case AdmissionType::kExact:
      return AdmitExact(filters_[partitioning_.Of(position)], position);
    case AdmissionType::kCounting:
      return AdmitCounting(filters_[partitioning_.Of(position)], position);
  }
  return true;
}

bool AdmissionFilter::AdmitExact(Filter& filter, Position position) const {
  const auto it = filter.steps.find(position.value);
  if (it != filter.steps.end()) {
    if (++it->second < rules_.min_steps) return false;
    filter.steps.erase(it);
    return true;
  }
  if (filter.steps.size() >= most_entries_) ForgetRare(filter);
  filter.steps.emplace(position.value, 1);
  return false;
}

// Keys with the fewest steps go until at most half are left (in the manner of lossy counting, Manku
// and Motwani, 2002), so that a full filter still learns of new keys. All keys of one count go
// together: the order of the hash table reaches nothing.
void AdmissionFilter::ForgetRare(Filter& filter) const {
  std::array<size_t, 256> keys_of{};
  for (const auto& [position, steps] : filter.steps) ++keys_of[std::min(steps, 255u)];
  size_t left = filter.steps.size();
  uint32_t below = 0;
  while (left > most_entries_ / 2 && below < keys_of.size()) left -= keys_of[below++];
  absl::erase_if(filter.steps, [below](const auto& entry) { return entry.second < below; });
}

// Double hashing (Kirsch and Mitzenmacher, 2006): row r looks at h1 + r h2.
size_t AdmissionFilter::Cell(Position position, uint32_t row) const {
  const uint64_t hash = Mix64(position.value);
  const uint64_t stride = (hash >> 32) | 1;
  return row * width_ + ((hash + row * stride) & (width_ - 1));
}

// Places go by the low bits of one number, so that a counter of the smaller width stands for those
// of the greater one that end in its bits: a wider filter answers as before, a narrower one has the
// greatest of them, and so no key less than it had.
std::vector<uint8_t> AdmissionFilter::Resized(std::span<const uint8_t> counters) const {
  const size_t width = counters.size() / kSketchRows;
  std::vector<uint8_t> out(kSketchRows * width_);
  for (size_t row = 0; row < kSketchRows; ++row) {
    for (size_t i = 0; i < std::max(width, width_); ++i) {
      uint8_t& to = out[row * width_ + (i & (width_ - 1))];
      to = std::max(to, counters[row * width + (i & (width - 1))]);
    }
  }
  return out;
}

uint32_t AdmissionFilter::LeastCounter(const Filter& filter, Position position) const {
  uint8_t least = 255;
  for (uint32_t row = 0; row < kSketchRows; ++row) {
    least = std::min(least, filter.counters[Cell(position, row)]);
  }
  return least;
}

// Conservative update (Estan and Varghese, 2002): only the smallest counters grow. Halving keeps
// the load of a row below about two keys a counter, and is the filter's forgetting (as in TinyLFU,
// Einziger, Friedman and Manes, 2017).
bool AdmissionFilter::AdmitCounting(Filter& filter, Position position) const {
  if (filter.counters.empty()) filter.counters.assign(kSketchRows * width_, 0);
  const uint32_t steps = LeastCounter(filter, position) + 1;
  for (uint32_t row = 0; row < kSketchRows; ++row) {
    uint8_t& counter = filter.counters[Cell(position, row)];
    if (counter < steps && counter < 255) ++counter;
  }
  if (++filter.counted >= width_) {
    for (uint8_t& counter : filter.counters) counter /= 2;
    filter.counted = 0;
  }
  return steps >= rules_.min_steps;
}

uint32_t AdmissionFilter::StepsOf(Position position) const {
  const auto it = filters_.find(partitioning_.Of(position));
  if (it == filters_.end()) return 0;
  if (!it->second.counters.empty()) return LeastCounter(it->second, position);
  const auto entry = it->second.steps.find(position.value);
  return entry == it->second.steps.end() ? 0 : entry->second;
}

absl::Status AdmissionFilter::Save(const Visitor& visit) const {
  const uint32_t head[2] = {table_.value, static_cast<uint32_t>(rules_.type)};
  std::vector<uint64_t> words;
  std::vector<uint8_t> bytes;
  for (const auto& [partition, filter] : filters_) {
    words.assign(1, 0);
    std::memcpy(words.data(), head, sizeof head);
    if (rules_.type == AdmissionType::kExact) {
      std::vector<std::pair<uint64_t, uint32_t>> entries(filter.steps.begin(), filter.steps.end());
      std::sort(entries.begin(), entries.end());
      for (const auto& [position, steps] : entries) {
        words.push_back(position);
        words.push_back(steps);
      }
    } else {
      words.push_back(filter.counted);
    }
    bytes.resize(words.size() * 8);
    std::memcpy(bytes.data(), words.data(), bytes.size());
    bytes.insert(bytes.end(), filter.counters.begin(), filter.counters.end());
    if (absl::Status s = visit(partition, bytes); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status AdmissionFilter::Load(PartitionId partition, std::span<const uint8_t> section) {
  const auto damaged = [&](const char* what) {
    return absl::DataLossError(
        absl::StrCat("admission filter of partition ", partition.value, ": ", what));
  };
  uint32_t head[2];
  if (section.size() < sizeof head) return damaged("too short");
  std::memcpy(head, section.data(), sizeof head);
  if (head[0] != table_.value || head[1] != static_cast<uint32_t>(rules_.type)) {
    return absl::OkStatus();
  }
  const std::span<const uint8_t> bytes = section.subspan(sizeof head);
  Filter filter;
  if (rules_.type == AdmissionType::kCounting) {
    const size_t counters = bytes.size() < 8 ? 0 : bytes.size() - 8;
    if (counters % kSketchRows != 0 || !std::has_single_bit(counters / kSketchRows)) {
      return damaged("no number of counters that a filter has");
    }
    std::memcpy(&filter.counted, bytes.data(), 8);
    filter.counters = Resized(bytes.subspan(8));
  } else {
    if (bytes.size() % 16 != 0) return damaged("no whole number of entries");
    for (size_t at = 0; at < bytes.size(); at += 16) {
      uint64_t entry[2];
      std::memcpy(entry, bytes.data() + at, sizeof entry);
      if (partitioning_.Of(Position(entry[0])) != partition || entry[1] == 0 || entry[1] > 255) {
        return damaged("an entry of another partition, or of no step");
      }
      filter.steps[entry[0]] = static_cast<uint32_t>(entry[1]);
    }
  }
  filters_[partition] = std::move(filter);
  return absl::OkStatus();
}

uint64_t AdmissionFilter::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [partition, filter] : filters_) {
    bytes += filter.counters.size() + filter.steps.size() * kExactEntryBytes;
  }
  return bytes;
}

}  // namespace strata::server
