#include "tools/cli/inspect/top_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "tools/cli/base/text_table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

// Metrics of one process now and before.
class Change {
 public:
  Change(const TopSample* before, const TopSample& now) : now_(now.metrics) {
    if (before == nullptr || before->metrics.empty()) return;
    before_ = &before->metrics;
    seconds_ = absl::ToDoubleSeconds(now.time - before->time);
  }

  std::optional<double> Value(absl::string_view name) const {
    const auto it = now_.find(name);
    return it == now_.end() ? std::nullopt : std::optional<double>(it->second);
  }
  std::optional<double> Difference(absl::string_view name) const {
    if (before_ == nullptr) return std::nullopt;
    const auto then = before_->find(name);
    const auto now = now_.find(name);
    if (then == before_->end() || now == now_.end() || now->second < then->second) {
      return std::nullopt;
    }
    return now->second - then->second;
  }
  std::optional<double> Rate(absl::string_view name) const {
    const auto difference = Difference(name);
    if (!difference || seconds_ <= 0) return std::nullopt;
    return *difference / seconds_;
  }

 private:
  const MetricValues& now_;
  const MetricValues* before_ = nullptr;
  double seconds_ = 0;
};

std::optional<double> Sum(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return *a + *b;
}

void FillServer(const Change& m, TopRow& row) {
  row.pulled_keys_per_second = m.Rate("strata_server_pulled_keys_total");
  row.pushed_keys_per_second = m.Rate("strata_server_pushed_keys_total");
  const auto dram = m.Difference("strata_server_dram_hits");
  const auto ssd = m.Difference("strata_server_ssd_reads");
  const double hbm = m.Difference("strata_server_hbm_hits").value_or(0);
  if (dram && ssd && hbm + *dram + *ssd > 0) {
    const double found = hbm + *dram + *ssd;
    row.hbm_hit_rate = hbm / found;
    row.dram_hit_rate = *dram / found;
    row.ssd_hit_rate = *ssd / found;
  }
  row.queue = Sum(m.Value("strata_server_pull_in_flight"), m.Value("strata_server_push_in_flight"));
  row.received_bytes_per_second = Sum(m.Rate("strata_server_pull_request_bytes_total"),
                                      m.Rate("strata_server_push_request_bytes_total"));
  row.sent_bytes_per_second = Sum(m.Rate("strata_server_pull_reply_bytes_total"),
                                  m.Rate("strata_server_push_reply_bytes_total"));
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json OrNull(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

template <typename T, typename Format>
std::string OrDash(const std::optional<T>& value, const Format& format) {
  return value ? format(*value) : std::string("-");
}
std::string Percent(double share) { return absl::StrFormat("%.0f%%", 100 * share); }

}  // namespace

std::vector<TopRow> TopRows(const std::vector<TopSample>& before,
                            const std::vector<TopSample>& now) {
  std::vector<TopRow> rows;
  for (const TopSample& sample : now) {
    const auto then = std::find_if(before.begin(), before.end(), [&](const TopSample& s) {
      return s.name == sample.name && s.role == sample.role;
    });
    const Change m(then == before.end() ? nullptr : &*then, sample);
    TopRow row;
    row.name = sample.name;
    row.role = sample.role;
    row.alive = sample.alive;
    row.trouble = sample.trouble;
    row.cpu = m.Rate("strata_process_cpu_seconds_total");
    row.memory_bytes = m.Value("strata_process_resident_bytes");
    if (sample.role == "server") FillServer(m, row);
    if (sample.role == "worker") row.examples_per_second = m.Rate("strata_worker_examples_total");
    row.clock = sample.clock;
    if (sample.clock && sample.newest) {
      row.lag = *sample.newest - std::min(*sample.newest, *sample.clock);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string TopTable(const std::vector<TopRow>& rows) {
  std::vector<TextRow> table = {{"PROCESS", "STATE", "CPU", "MEMORY", "PULLED/S", "PUSHED/S",
                                 "GPU-HIT", "DRAM-HIT", "SSD-HIT", "QUEUE", "IN/S", "OUT/S",
                                 "EXAMPLES/S", "CLOCK", "LAG"}};
  const auto number = [](uint64_t n) { return absl::StrCat(n); };
  for (const TopRow& r : rows) {
    table.push_back(
        {r.name,
         !r.alive            ? "lost"
         : r.trouble.empty() ? "up"
                             : "no metrics",
         OrDash(r.cpu, Percent), OrDash(r.memory_bytes, BytesText),
         OrDash(r.pulled_keys_per_second, CountText), OrDash(r.pushed_keys_per_second, CountText),
         OrDash(r.hbm_hit_rate, Percent), OrDash(r.dram_hit_rate, Percent),
         OrDash(r.ssd_hit_rate, Percent), OrDash(r.queue, CountText),
         OrDash(r.received_bytes_per_second, BytesText), OrDash(r.sent_bytes_per_second, BytesText),
         OrDash(r.examples_per_second, CountText), OrDash(r.clock, number), OrDash(r.lag, number)});
  }
  return TextTable(table);
}

std::string TopJson(const std::vector<TopRow>& rows, absl::Time time) {
  Json list = Json::array();
  for (const TopRow& r : rows) {
    list.push_back(Json{{"name", r.name},
                        {"role", r.role},
                        {"alive", r.alive},
                        {"trouble", r.trouble.empty() ? Json(nullptr) : Json(r.trouble)},
                        {"cpuCores", OrNull(r.cpu)},
                        {"memoryBytes", OrNull(r.memory_bytes)},
                        {"pulledKeysPerSecond", OrNull(r.pulled_keys_per_second)},
                        {"pushedKeysPerSecond", OrNull(r.pushed_keys_per_second)},
                        {"hbmHitRate", OrNull(r.hbm_hit_rate)},
                        {"dramHitRate", OrNull(r.dram_hit_rate)},
                        {"ssdHitRate", OrNull(r.ssd_hit_rate)},
                        {"queue", OrNull(r.queue)},
                        {"receivedBytesPerSecond", OrNull(r.received_bytes_per_second)},
                        {"sentBytesPerSecond", OrNull(r.sent_bytes_per_second)},
                        {"examplesPerSecond", OrNull(r.examples_per_second)},
                        {"clock", OrNull(r.clock)},
                        {"lag", OrNull(r.lag)}});
  }
  return Json{{"timeUnixMs", absl::ToUnixMillis(time)}, {"processes", list}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace strata
