#include "tools/cli/plot/command.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/files/prediction_names.h"
#include "tools/cli/base/nearest.h"
#include "tools/cli/plot/chart.h"
#include "tools/cli/plot/metrics_file.h"
#include "tools/cli/plot/run_curve.h"
#include "tools/generate/part_file.h"

namespace strata {
namespace {

constexpr absl::string_view kSvgStart = "<svg ";

// What begins as an SVG is replaced; any other file, as one that a job wrote, stays.
absl::Status CheckReplaced(const std::string& path) {
  FileSystem& files = FileSystem::Kernel();
  const int fd = files.Open(path, O_RDONLY);
  if (fd == -ENOENT) return absl::OkStatus();
  if (fd < 0) return ErrnoStatus(-fd, "look at", path);
  std::vector<uint8_t> start(kSvgStart.size());
  const ssize_t got = files.Read(fd, start, 0);
  files.Close(fd);
  if (got < 0) return ErrnoStatus(static_cast<int>(-got), "read", path);
  const absl::string_view text(reinterpret_cast<const char*>(start.data()),
                               static_cast<size_t>(got));
  if (got == 0 || text == kSvgStart) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--output ", path, " is there, and no picture of strata plot; it stays: name another file"));
}

absl::Status CheckOptions(const PlotOptions& o) {
  if (o.files.size() > Chart::kMostCurves) {
    return absl::InvalidArgumentError(absl::StrCat("plot: ", o.files.size(),
                                                   " files; a picture has at most ",
                                                   Chart::kMostCurves, " curves: leave some out"));
  }
  if (!o.labels.empty() && o.labels.size() != o.files.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("plot: ", o.labels.size(), " --label and ", o.files.size(),
                     " files; give one --label for each file, in the same order, or none"));
  }
  const auto place = PlaceOfOutput("--output", o.output);
  if (!place.ok()) return place.status();
  if (o.output == "-" || place->device) return absl::OkStatus();
  if (!absl::EndsWith(o.output, ".svg")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output ", o.output, " is no name of an SVG; end it with .svg, or give -"));
  }
  if (absl::Status s = CheckNoInput("--output", o.output, o.files); !s.ok()) return s;
  return CheckReplaced(place->path);
}

// "3 lines" or "1 line", and which was the first.
std::string LinesText(const RunCurve::Left& left) {
  return left.lines == 1 ? absl::StrCat("line ", left.first)
                         : absl::StrCat(left.lines, " lines, the first is line ", left.first);
}

void TellWhatIsLeftOut(const std::string& file, const PlotOptions& o, const RunCurve& run) {
  const auto tell = [&file](const RunCurve::Left& left, absl::string_view what) {
    if (left.lines == 0) return;
    std::fprintf(stderr, "%s\n", absl::StrCat(file, ": ", what, ": ", LinesText(left)).c_str());
  };
  tell(run.damaged(), "no JSON object, left out");
  tell(run.without_number(), absl::StrCat("no number for ", o.y, ", left out"));
  tell(run.not_drawable(), "not above 0 on a logarithmic axis, or too large to draw, left out");
  tell(run.anew(), "another run begins, and what was before it is left out");
  tell(run.back(), "the run went back; what it trained again is drawn as it was last");
}

// No file has a point: a name that no line has, or only lines that have it without a number.
absl::Status NothingToDraw(const PlotOptions& o, PlotX x, const std::set<std::string>& names) {
  const std::vector<std::string> all(names.begin(), names.end());
  const auto unknown = [&](absl::string_view option, absl::string_view typed,
                           const std::string& name) {
    const std::string nearest = Nearest(name, all);
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", typed, ": no line has a number '", name,
                     "'; there are: ", all.empty() ? "none" : absl::StrJoin(all, ", "),
                     nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?")));
  };
  if (!names.contains(o.y)) return unknown("--y", o.y, o.y);
  if (!names.contains(MemberOf(x))) return unknown("--x", o.x, MemberOf(x));
  return absl::InvalidArgumentError(absl::StrCat("plot: no line has numbers for both '", o.y,
                                                 "' and '", MemberOf(x), "' that can be drawn"));
}

absl::StatusOr<Chart> ReadChart(const PlotOptions& o) {
  Chart chart;
  chart.title = o.title;
  chart.x_name = o.x;
  chart.y_name = o.y;
  chart.x_is_seconds = o.x == "time";
  chart.log_x = o.log_x;
  chart.log_y = o.log_y;
  chart.width = o.width;
  chart.height = o.height;
  RunCurveOptions options;
  options.x = o.x == "time" ? PlotX::kTime : o.x == "examples" ? PlotX::kExamples : PlotX::kStep;
  options.y = o.y;
  options.log_x = o.log_x;
  options.log_y = o.log_y;
  std::set<std::string> names;
  bool any = false;
  for (size_t i = 0; i < o.files.size(); ++i) {
    RunCurve run(options);
    if (absl::Status s = ReadMetricsFile(o.files[i], run); !s.ok()) return s;
    TellWhatIsLeftOut(o.files[i], o, run);
    names.insert(run.names().begin(), run.names().end());
    Curve curve{o.labels.empty() ? o.files[i] : o.labels[i], run.points()};
    any = any || !curve.points.empty();
    chart.curves.push_back(std::move(curve));
  }
  if (!any) return NothingToDraw(o, options.x, names);
  return chart;
}

absl::Status WriteSvg(const std::string& path, const std::string& svg) {
  PartFile file(path);
  if (absl::Status s = file.Open(); !s.ok()) return s;
  if (absl::Status s = file.Write(svg); !s.ok()) return s;
  return file.Finish();
}

}  // namespace

ExitCode RunPlot(const PlotOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return ReportError(s);
  const auto chart = ReadChart(options);
  if (!chart.ok()) return ReportError(chart.status());
  if (absl::Status s = WriteSvg(options.output, ChartSvg(*chart)); !s.ok()) return ReportError(s);
  return kExitOk;
}

}  // namespace strata
