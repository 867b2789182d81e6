#include "worker/data/reading/targets.h"

#include <cstdint>

#include "worker/data/formats/line_parser.h"
#include "worker/data/index/target_search.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

// Read at a time.
constexpr BatchLimit kMost = {.lines = 1024, .features = 1 << 20};

}  // namespace

absl::Status CheckTargets(const JobSpec& spec, const InputIndex& index, BatchSource* source,
                          const std::function<bool()>& cancelled) {
  if (!index.has_before()) return absl::OkStatus();
  TargetSearch search(spec, Labels::kRequired);
  Batch batch;
  for (uint64_t line = 0; line < index.lines() && search.wanted();) {
    if (cancelled && cancelled()) return absl::CancelledError("training was stopped");
    const auto read = ReadIndexedLines(source, line, index.lines(), kMost, &batch);
    if (!read.ok()) return read.status();
    line += *read;
    search.Add(batch);
  }
  search.AddBad(source->first_bad_line());
  return search.Check(FilesForMessages(index), TargetSearch::Remedy::kFiles);
}

}  // namespace strata
