#include "worker/data/reading/field_count.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/index/feature_counter.h"
#include "worker/data/reading/line_stream.h"

namespace strata {

absl::StatusOr<uint32_t> CountFieldsOfLines(const DataSpec& data,
                                            const std::vector<std::string>& files,
                                            uint64_t most_bytes) {
  if (files.empty()) return absl::InvalidArgumentError("no input files; set spec.data.train");
  LineStream lines({.paths = files});
  FeatureCounter counter(data);
  LineStream::Line line;
  uint64_t bytes = 0;
  while (true) {
    const absl::StatusOr<bool> more = lines.Next(&line);
    if (!more.ok()) return more.status();
    if (!*more) return counter.Fields(files[0]);
    bytes += line.text.size() + 1;
    if (bytes > most_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the text of input file ", files[0], files.size() > 1 ? " and those after it" : "",
          " has more than ", most_bytes, " bytes"));
    }
    counter.Add(line.text);
  }
}

}  // namespace strata
