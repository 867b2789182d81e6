// From lines of a metrics file to the points of its run.
#ifndef STRATA_TOOLS_CLI_PLOT_RUN_CURVE_H_
#define STRATA_TOOLS_CLI_PLOT_RUN_CURVE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/cli/plot/curve_points.h"

namespace strata {

enum class PlotX : uint8_t { kStep, kExamples, kTime };

// The member of a line that it comes from.
const char* MemberOf(PlotX x);

struct RunCurveOptions {
  PlotX x = PlotX::kStep;
  std::string y;  // a member of lines; of one in another: evalTasks.click.auc
  bool log_x = false, log_y = false;
};

// Lines of one file, in order. A line whose step is not beyond the first one's begins another run,
// which takes the place of the one before. Where a job went back to a checkpoint, steps and
// examples that it trained again take the place of those before, while time goes on. One thread.
class RunCurve {
 public:
  // Names beyond are not told: names in a message are for people.
  static constexpr size_t kMostNames = 200;

  struct Left {
    uint64_t lines = 0;
    uint64_t first = 0;  // number of the first of them, from 1
  };

  explicit RunCurve(const RunCurveOptions& options) : o_(options), points_(options.log_x) {}

  // `complete`: with its end of line. What is left of one that is being written is none.
  void AddLine(absl::string_view line, bool complete);
  // A line that is too long to be one.
  void AddLongLine();

  std::vector<CurvePoint> points() const { return points_.points(); }
  // Those of lines' members that are numbers, or null where there is no number.
  const std::set<std::string>& names() const { return names_; }
  uint64_t lines() const { return lines_; }
  const Left& damaged() const { return damaged_; }
  const Left& without_number() const { return without_number_; }  // y is null
  const Left& not_drawable() const { return not_drawable_; }      // on a logarithmic axis, or huge
  const Left& anew() const { return anew_; }  // lines with which another run began
  const Left& back() const { return back_; }  // lines with which a run went back

 private:
  struct Values;

  void Count(Left& left) const;
  // Where the line stands on the axis.
  std::optional<double> Across(const Values& values);

  const RunCurveOptions o_;
  CurvePoints points_;
  std::set<std::string> names_;
  std::optional<double> first_step_, last_step_;
  std::optional<double> last_time_, last_examples_;
  double seconds_ = 0, earlier_examples_ = 0;
  uint64_t lines_ = 0;
  Left damaged_, without_number_, not_drawable_, anew_, back_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_RUN_CURVE_H_
