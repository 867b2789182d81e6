#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {

void AddPlotCommand(CLI::App& app, CommandSet& commands) {
  auto [plot, o] = commands.Add<PlotOptions>(
      app, "plot", "Draw curves of metrics files (spec.output.metrics) as an SVG");
  plot->add_option("metrics", o.files, "metrics files, a curve each; jobs may write them meanwhile")
      ->required()
      ->type_name("METRICS");
  plot->add_option("--x", o.x, "step, examples, or time: since a run's first line, pauses included")
      ->capture_default_str()
      ->check(CLI::IsMember({"time", "examples", "step"}));
  plot->add_option("--y", o.y,
                   "a number of the files' lines, as in auc, loss, evalAuc, examplesPerSecond or "
                   "evalTasks.LABEL.auc")
      ->required()
      ->type_name("NAME");
  plot->add_option("-o,--output", o.output,
                   "picture to write, NAME.svg, which replaces a picture alone; -: stdout")
      ->required()
      ->type_name("FILE");
  plot->add_option("--label", o.labels,
                   "a curve's text in the legend, once for each file in their order (default: the "
                   "file's name)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  plot->add_option("--title", o.title, "above the picture")->type_name("TEXT");
  plot->add_flag("--log-x", o.log_x, "a logarithmic axis");
  plot->add_flag("--log-y", o.log_y, "a logarithmic axis");
  plot->add_option("--width", o.width, "of the picture in pixels")
      ->capture_default_str()
      ->check(CLI::Range(320, 10000));
  plot->add_option("--height", o.height, "of the picture in pixels, more where its legend needs it")
      ->capture_default_str()
      ->check(CLI::Range(240, 10000));
}

}  // namespace strata
