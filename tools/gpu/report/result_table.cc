#include "tools/gpu/report/result_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/gpu/report/bar_line.h"

namespace strata::gpu_check {
namespace {

constexpr size_t kMostReason = 200;

// A row of the table; those of a higher rank are left out first.
struct Row {
  std::string text;
  int rank = 0;
};

// One line, of at most kMostReason bytes.
std::string Short(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > kMostReason) {
    text.resize(kMostReason - 3);
    text += "...";
  }
  return text;
}

std::string Percent(double ratio) {
  return ratio <= 0 ? "-" : absl::StrFormat("%.1f%%", 100 * ratio);
}

std::string Counted(const BarLine& line) {
  std::vector<std::string> counted;
  if (line.bytes > 0) counted.push_back(absl::StrFormat("%.4g B", line.bytes));
  if (line.operations > 0) {
    counted.push_back(absl::StrFormat("%.4g %s", line.operations, line.operation));
  }
  return absl::StrJoin(counted, ", ");
}

// Per second: keys or examples where they are counted, else bytes, else operations.
std::string Rate(const BarLine& line) {
  if (line.ms <= 0) return "-";
  if (line.operation == "keys") {
    return absl::StrFormat("%.2f Gkeys/s", line.operations / (line.ms * 1e-3) / 1e9);
  }
  if (line.operation == "examples") {
    return absl::StrFormat("%.3f Mex/s", line.operations / (line.ms * 1e-3) / 1e6);
  }
  const double of = line.bytes > 0 ? line.bytes : line.operations;
  const double giga = of / (line.ms * 1e-3) / 1e9;
  return line.bytes > 0 ? absl::StrFormat("%.0f GB/s", giga)
                        : absl::StrFormat("%.0f G%s/s", giga, line.operation);
}

void AddBars(const Report& report, std::vector<Row>* rows) {
  bool head = false;
  for (const PartResult& part : report.parts) {
    for (const BarLine& line : part.lines) {
      if (!head) {
        rows->push_back({absl::StrFormat("%-9s %-46s %-12s %10s %13s %9s %7s %8s  %s", "bar",
                                         "case", "path", "ms", "rate", "copy GB/s", "of copy",
                                         "of probe", "counted a call; bar")});
        head = true;
      }
      const std::vector<std::string> missed = MissedBars(line);
      std::string judged =
          missed.empty() ? "" : absl::StrCat("; MISSED: ", absl::StrJoin(missed, ", "));
      if (missed.empty() && (line.least_of_copy > 0 || line.least_of_probe > 0 ||
                             line.most_ms > 0 || line.most_change > 0)) {
        judged = "; kept";
      }
      const std::string note = line.note.empty() ? "" : absl::StrCat("; ", Short(line.note));
      rows->push_back({absl::StrFormat("%-9s %-46s %-12s %10.4f %13s %9.0f %7s %8s  %s%s%s",
                                       line.bar, line.name, line.path, line.ms, Rate(line),
                                       line.copy_bytes_per_s / 1e9, Percent(OfCopy(line)),
                                       Percent(OfProbe(line)), Counted(line), judged, note),
                       missed.empty() ? 1 : 0});
    }
  }
}

// How many parts from `first` on were skipped for one reason.
size_t SkippedAlike(const std::vector<PartResult>& parts, size_t first) {
  size_t end = first;
  while (end < parts.size() && parts[end].state == PartState::kSkipped &&
         parts[end].reason == parts[first].reason) {
    ++end;
  }
  return end - first;
}

void AddParts(const Report& report, std::vector<Row>* rows) {
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const PartResult& part = report.parts[i];
    if (const size_t alike = SkippedAlike(report.parts, i); alike > 1) {
      i += alike - 1;
      rows->push_back({absl::StrFormat("%-8s %d parts, %s to %s  %s", StateName(part.state), alike,
                                       part.name, report.parts[i].name, Short(part.reason)),
                       2});
      continue;
    }
    std::string text =
        absl::StrFormat("%-8s %-34s %6.1f s", StateName(part.state), part.name, part.seconds);
    if (!(part.cases == CaseCounts())) {
      absl::StrAppend(&text, "  cases: ", part.cases.passed, " passed, ", part.cases.failed,
                      " failed, ", part.cases.skipped, " skipped");
    }
    if (!part.reason.empty()) absl::StrAppend(&text, "  ", Short(part.reason));
    const int rank = part.state == PartState::kFailed    ? 0
                     : part.state == PartState::kSkipped ? 2
                                                         : 3;
    rows->push_back({std::move(text), rank});
  }
}

std::string LastRow(const Report& report) {
  uint32_t counts[3] = {}, no_time = 0;
  for (const PartResult& part : report.parts) {
    ++counts[static_cast<int>(part.state)];
    no_time += part.no_time ? 1 : 0;
  }
  std::string text = absl::StrCat("parts: ", counts[0], " passed, ", counts[1], " failed, ",
                                  counts[2], " skipped");
  if (no_time > 0) {
    absl::StrAppend(&text, ", ", no_time, " of them since ", report.budget_seconds,
                    " s were too little; give a larger --budget_seconds");
  }
  if (!report.device_found) absl::StrAppend(&text, "; there is no device");
  if (ExitCodeOf(report) == 3) absl::StrAppend(&text, "; nothing is proven");
  return text;
}

}  // namespace

std::string ResultTable(const Report& report) {
  std::vector<Row> rows;
  for (const PartResult& part : report.parts) {
    for (const auto& [name, value] : part.facts) {
      rows.push_back({absl::StrFormat("%-12s %s", name, Short(value))});
    }
  }
  AddBars(report, &rows);
  AddParts(report, &rows);
  const std::string last = LastRow(report);

  constexpr size_t kLeftOutRow = 80;
  size_t bytes = last.size() + 1 + kLeftOutRow;
  for (const Row& row : rows) bytes += row.text.size() + 1;
  size_t left_out = 0;
  // The last row of the highest rank goes first; at rank 0 too, when nothing else is left.
  for (int rank = 3; rank >= 0; --rank) {
    for (size_t i = rows.size(); i-- > 0 && bytes > kMostTableBytes;) {
      if (rows[i].rank != rank) continue;
      bytes -= rows[i].text.size() + 1;
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
      ++left_out;
    }
  }
  std::string table;
  for (const Row& row : rows) absl::StrAppend(&table, row.text, "\n");
  if (left_out > 0) absl::StrAppend(&table, left_out, " rows left out: gpu_check.json has them\n");
  absl::StrAppend(&table, last, "\n");
  return table;
}

}  // namespace strata::gpu_check
