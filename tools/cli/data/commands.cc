#include "tools/cli/data/commands.h"

#include <glog/logging.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job/evaluation_result.h"
#include "tools/cli/base/evaluation_json.h"
#include "tools/cli/base/interrupt.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/progress.h"
#include "tools/cli/checkpoint/commands.h"
#include "tools/cli/data/scored_text.h"
#include "tools/cluster/embedded/predict.h"
#include "tools/generate/criteo_generator.h"
#include "tools/generate/movielens_generator.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Where a command tells of data that it wrote: they may be on stdout where they are in no file.
std::FILE* Beside(bool to_device) { return to_device ? stderr : stdout; }

// Called with the rows done so far of `rows`.
std::function<void(uint64_t)> ShowPercent(bool terminal, uint64_t rows) {
  return [terminal, rows](uint64_t done) {
    if (terminal) {
      std::fprintf(stderr, "\r%3.0f%%",
                   100.0 * static_cast<double>(done) / static_cast<double>(rows));
    }
  };
}

}  // namespace

ExitCode RunPredictCommand(const PredictCommandOptions& options) {
  if (options.checkpoint.empty() == options.job.empty()) {
    return ReportError(
        absl::InvalidArgumentError("predict: give --checkpoint DIR or --job JOB (one of them)"));
  }
  if (options.output.empty()) {
    return ReportError(absl::InvalidArgumentError("--output has no name; name a file"));
  }
  absl::StatusOr<std::string> where = options.job.empty()
                                          ? absl::StatusOr<std::string>(options.checkpoint)
                                          : CheckpointOfJob(options.cluster, options.job);
  if (!where.ok()) return ReportError(where.status());
  PredictOptions predict;
  predict.checkpoint_dir = *where;
  predict.inputs = options.inputs;
  predict.format_override = options.format;
  predict.vocabularies = options.vocabularies;
  predict.output = options.output;
  predict.scores_only = options.scores_only;
  predict.header = options.header;
  predict.max_bad_lines = options.max_bad_lines;
  predict.dram_bytes = options.dram_bytes;
  const std::atomic<bool>& interrupted = CatchInterrupts();
  predict.cancelled = &interrupted;
  std::signal(SIGPIPE, SIG_IGN);
  // What the server in this process would log is told by the command's own error.
  FLAGS_minloglevel = google::GLOG_FATAL;
  absl::StatusOr<PredictSummary> summary = RunPredict(predict);
  std::signal(SIGPIPE, SIG_DFL);
  if (!summary.ok() && interrupted.load()) {
    std::fprintf(stderr, "strata: interrupted\n");
    return kExitInterrupted;
  }
  if (!summary.ok()) return ReportError(summary.status());
  // As any program whose reader has left, now that nothing lies about any more.
  if (summary->reader_left) std::raise(SIGPIPE);
  if (options.json) {
    std::FILE* const out = Beside(summary->to_device);
    Json json{{"checkpoint", summary->checkpoint},
              {"step", summary->step},
              {"lines", summary->lines},
              {"auc", OrNull(AucOf(summary->result))},
              {"logloss", OrNull(LossOf(summary->result))},
              {"labelledLines", summary->labelled},
              {"measuredLines", summary->measured},
              {"badLines", summary->bad_lines}};
    if (summary->result.tasks_size() > 0) json["tasks"] = TasksAsJson(summary->result);
    std::fprintf(out, "%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::fprintf(stderr, "%s\n", ScoredText(*summary).c_str());
  }
  return kExitOk;
}

ExitCode RunGenerateCriteo(const GenerateCriteoOptions& options) {
  CriteoGeneratorOptions generator;
  generator.rows = options.rows;
  generator.first_row = options.first_row;
  generator.vocabulary = options.vocab;
  generator.zipf = options.zipf;
  generator.seed = options.seed;
  const bool terminal = ProgressOptions::ForStderr().terminal;
  absl::StatusOr<CriteoGeneratorResult> made =
      GenerateCriteo(generator, options.output, ShowPercent(terminal, options.rows));
  if (terminal) std::fprintf(stderr, "\r");
  if (!made.ok()) return ReportError(made.status());
  std::FILE* const out = Beside(made->to_device);
  if (options.json) {
    const Json json{{"output", options.output},
                    {"rows", made->rows},
                    {"bytes", made->bytes},
                    {"positives", made->positives},
                    {"teacherAuc", Finite(made->teacher_auc)},
                    {"teacherLogloss", Finite(made->teacher_logloss)}};
    std::fprintf(out, "%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::fprintf(out, "%s: %s rows, %s bytes; the teacher's own AUC is %.4f, logloss %.4f\n",
                 options.output.c_str(), WithCommas(made->rows).c_str(),
                 WithCommas(made->bytes).c_str(), made->teacher_auc, made->teacher_logloss);
  }
  return kExitOk;
}

ExitCode RunGenerateMovielens(const GenerateMovielensOptions& options) {
  MovielensGeneratorOptions generator;
  generator.rows = options.rows;
  generator.first_row = options.first_row;
  generator.users = options.users;
  generator.items = options.items;
  generator.most_history = options.history;
  generator.seed = options.seed;
  const bool terminal = ProgressOptions::ForStderr().terminal;
  const auto made =
      GenerateMovielens(generator, options.output, ShowPercent(terminal, options.rows));
  if (terminal) std::fprintf(stderr, "\r");
  if (!made.ok()) return ReportError(made.status());
  std::FILE* const out = Beside(made->to_device);
  if (options.json) {
    const Json json{{"output", options.output},
                    {"rows", made->rows},
                    {"bytes", made->bytes},
                    {"clicks", made->clicks},
                    {"ratings", made->ratings},
                    {"clickAuc", Finite(made->click_auc)},
                    {"clickLogloss", Finite(made->click_logloss)},
                    {"ratingAuc", Finite(made->rating_auc)},
                    {"ratingMse", Finite(made->rating_mse)},
                    {"ratingMae", Finite(made->rating_mae)}};
    std::fprintf(out, "%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::fprintf(
        out,
        "%s: %s rows, %s bytes; the teacher's own: clicked: AUC %.4f, logloss %.4f; rating: AUC "
        "%.4f (4 and more), mse %.4f, mae %.4f\n",
        options.output.c_str(), WithCommas(made->rows).c_str(), WithCommas(made->bytes).c_str(),
        made->click_auc, made->click_logloss, made->rating_auc, made->rating_mse, made->rating_mae);
  }
  return kExitOk;
}

}  // namespace strata
