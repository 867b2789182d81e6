#include "tools/cli/base/job_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/job/evaluation_result.h"
#include "proto/job/memory_need.h"
#include "tools/cli/base/evaluation_json.h"
#include "tools/cli/base/listing_text.h"
#include "tools/cli/base/text_table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json LifeCycleJson(const LifeCycleCounts& c) {
  return Json{{"admitted", c.admitted()},
              {"refused", c.refused()},
              {"removedByTtl", c.removed_by_ttl()},
              {"removedByCount", c.removed_by_count()},
              {"removedByScore", c.removed_by_score()},
              {"removedByNorm", c.removed_by_norm()},
              {"removedByBytes", c.removed_by_bytes()}};
}

std::string LifeCycleText(const LifeCycleCounts& c) {
  std::string text;
  if (c.admitted() + c.refused() > 0) {
    absl::StrAppend(&text, "  ", WithCommas(c.admitted()), " features were admitted, ",
                    WithCommas(c.refused()), " gradients of others dropped\n");
  }
  std::string rules;
  const auto add = [&](uint64_t rows, const char* rule) {
    if (rows > 0) {
      absl::StrAppend(&rules, rules.empty() ? "" : ", ", WithCommas(rows), " by ", rule);
    }
  };
  add(c.removed_by_ttl(), "ttl");
  add(c.removed_by_count(), "count");
  add(c.removed_by_score(), "score");
  add(c.removed_by_norm(), "norm");
  add(c.removed_by_bytes(), "bytes");
  if (!rules.empty()) absl::StrAppend(&text, "  rows removed: ", rules, "\n");
  return text;
}

// Of training alone, as its workers measured it: over the last moments while it runs, over all of
// it at its end. Where they could not (it was a step or two, it did not get to its end), with all
// that was done between the first step and the last.
double ExamplesPerSecond(const JobStatus& s) {
  const bool measured = s.state() == SUCCEEDED && s.examples_per_second() > 0;
  if (IsFinal(s.state()) && !measured && s.train_seconds() > 0) {
    return static_cast<double>(s.examples()) / s.train_seconds();
  }
  return s.examples_per_second();
}

Json RefusedJson(const JobStatus& s) {
  Json rows = Json::array();
  for (const RefusedRow& row : s.refused()) {
    rows.push_back(Json{{"table", row.table()},
                        {"key", absl::StrCat(row.key())},
                        {"field", TextOrNull(row.field())},
                        {"refused", row.refused()}});
  }
  return rows;
}

std::string RefusedText(const JobStatus& s) {
  std::string text = absl::StrCat("  ", WithCommas(s.refused_rows()),
                                  " row updates were not finite and not applied\n");
  bool unnamed = false;
  for (const RefusedRow& row : s.refused()) {
    unnamed |= row.field().empty();
    absl::StrAppend(&text, "    ", row.field(), row.field().empty() ? "" : ", ", "key ", row.key(),
                    " of table ", row.table(), ": ", WithCommas(row.refused()),
                    row.refused() == 1 ? " time\n" : " times\n");
  }
  if (unnamed) {
    absl::StrAppend(&text,
                    "    (a key of table 0 is a feature as the data write it, or of csv and ",
                    "criteo its hash; fields are in the condition GradientsNotFinite)\n");
  }
  return text;
}

Json ToJson(const JobStatus& s) {
  const bool evaluated = s.has_result() && s.result().examples() > 0;
  Json json{{"job", s.job()}, {"name", s.name()}, {"state", StateName(s.state())}};
  json["auc"] = OrNull(AucOf(s.result()));
  json["logloss"] = OrNull(LossOf(s.result()));
  json["examples"] = s.examples();
  json["examplesPerSecond"] = Finite(ExamplesPerSecond(s));
  json["trainSeconds"] = Finite(s.train_seconds());
  json["modelHash"] = TextOrNull(s.model_hash());
  json["step"] = s.step();
  json["totalSteps"] = s.total_steps();
  json["totalExamples"] = s.total_examples();
  json["trainingLoss"] = Finite(s.training_loss());
  json["trainingAuc"] = Finite(s.training_auc());
  json["evaluatedStep"] = evaluated ? Json(s.result().step()) : Json(nullptr);
  json["evaluatedExamples"] = evaluated ? Json(s.result().examples()) : Json(nullptr);
  json["evaluatedPositives"] = evaluated ? PositivesOrNull(s.result()) : Json(nullptr);
  json["badLines"] = s.bad_lines();
  json["refusedRows"] = s.refused_rows();
  json["refused"] = RefusedJson(s);
  json["clippedRows"] = s.clipped_rows();
  if (s.has_life_cycle()) json["lifeCycle"] = LifeCycleJson(s.life_cycle());
  json["lostLocalSteps"] = s.lost_local_steps();
  json["checkpoint"] = TextOrNull(s.checkpoint());
  json["checkpointWrittenBytes"] = s.checkpoint_written_bytes();
  json["checkpointBytes"] = s.checkpoint_bytes();
  const bool estimated = s.checkpoint_bytes() > 0 && s.checkpoint_seconds_left() > 0;
  json["checkpointSecondsLeft"] = estimated ? Json(s.checkpoint_seconds_left()) : Json(nullptr);
  json["predictions"] = TextOrNull(s.predictions());
  if (s.has_train_input()) json["trainInput"] = ListingAsJson(s.train_input());
  if (s.has_eval_input()) json["evalInput"] = ListingAsJson(s.eval_input());
  json["servers"] = s.servers();
  json["workers"] = s.workers();
  json["generation"] = s.generation();
  json["rollbacks"] = s.rollbacks();
  json["submittedUnixMs"] = s.submitted_unix_ms();
  json["evaluations"] = Json::array();
  for (const EvaluationResult& e : s.evaluations()) {
    json["evaluations"].push_back(EvaluationAsJson(e));
  }
  json["concerns"] = Json::array();
  for (const Concern& c : s.concerns()) {
    json["concerns"].push_back(Json{{"reason", c.reason()},
                                    {"who", c.who()},
                                    {"other", TextOrNull(c.other())},
                                    {"sinceUnixMs", c.since_unix_ms()},
                                    {"knownBy", c.known_by()},
                                    {"remedy", c.remedy()}});
  }
  json["conditions"] = Json::array();
  for (const JobCondition& c : s.conditions()) {
    json["conditions"].push_back(
        Json{{"reason", c.reason()}, {"message", c.message()}, {"timeUnixMs", c.time_unix_ms()}});
  }
  const bool failed = s.state() == FAILED && !s.conditions().empty();
  json["error"] = failed ? Json(s.conditions().rbegin()->message()) : Json(nullptr);
  return json;
}

// Bytes that are not UTF-8 (a path may hold any) are replaced, not fatal.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Share(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.0f%%", 100.0 * std::min(part, whole) / whole);
}

std::string Quality(const JobStatus& s) {
  const std::optional<double> auc = AucOf(s.result());
  return auc ? absl::StrFormat("%.4f", *auc) : "-";
}

// The time of day here.
std::string ClockText(int64_t unix_ms) {
  return absl::FormatTime("%H:%M:%S", absl::FromUnixMillis(unix_ms), absl::LocalTimeZone());
}

}  // namespace

bool IsFinal(JobState state) { return state == SUCCEEDED || state == FAILED || state == CANCELLED; }

std::string StateName(JobState state) {
  if (state == JOB_STATE_UNSPECIFIED) return "unknown";
  return absl::AsciiStrToLower(JobState_Name(state));
}

std::string WithCommas(uint64_t number) {
  std::string digits = absl::StrCat(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string Duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  if (seconds < 60) return absl::StrFormat(seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string CheckpointText(const JobStatus& s) {
  std::string text = absl::StrCat(BytesText(static_cast<double>(s.checkpoint_written_bytes())),
                                  " of ", BytesText(static_cast<double>(s.checkpoint_bytes())));
  if (s.checkpoint_seconds_left() > 0) {
    absl::StrAppend(&text, ", ", Duration(s.checkpoint_seconds_left()), " left");
  }
  return text;
}

namespace {

std::string NoAucText(uint64_t examples, uint64_t positives) {
  return absl::StrCat("AUC is not defined (all ", WithCommas(examples), " labels are ",
                      positives == 0 ? "0)" : "1)");
}

// Of a model that has diverged.
constexpr char kNoNumbersText[] =
    "nothing is defined (the model predicts what is no number; train anew with lower "
    "spec.optimizer learning rates, and look at the condition GradientsNotFinite)";

// A prediction beyond floats makes a mean that has up to 77 digits.
std::string MetricText(double value) {
  return std::fabs(value) < 1e9 ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4g", value);
}

std::string TaskText(const TaskResult& t) {
  std::string text;
  const auto add = [&text](const char* name, bool is, double value) {
    if (is) absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", MetricText(value));
  };
  add("AUC", t.has_auc(), t.auc());
  if (t.has_positives() && t.examples() > 0 && OneClass(t.positives(), t.examples())) {
    text = NoAucText(t.examples(), t.positives());
  }
  add("logloss", t.has_logloss(), t.logloss());
  add("normalised entropy", t.has_normalised_entropy(), t.normalised_entropy());
  add("calibration", t.has_calibration(), t.calibration());
  add("GAUC", t.has_gauc(), t.gauc());
  add("mse", t.has_mse(), t.mse());
  add("mae", t.has_mae(), t.mae());
  add("loss", text.empty() && t.has_loss(), t.loss());
  // Lines that weigh something have a loss, whatever metrics were asked for.
  if (t.weight() > 0 && !t.has_loss()) text = kNoNumbersText;
  if (text.empty()) text = t.examples() == 0 ? "no line has it" : "nothing is defined";
  return absl::StrCat(t.label(), ": ", text);
}

}  // namespace

std::string AucText(const EvaluationResult& result) {
  if (const std::optional<double> auc = AucOf(result)) return absl::StrFormat("AUC %.4f", *auc);
  return NoAucText(result.examples(), result.positives());
}

std::string TrainingText(const JobStatus& s, absl::string_view auc_name) {
  std::string text = std::isfinite(s.training_loss())
                         ? absl::StrFormat("loss %.4f", s.training_loss())
                         : "loss is no finite number";
  if (std::isfinite(s.training_auc())) {
    absl::StrAppendFormat(&text, "%s %.4f", auc_name, s.training_auc());
  }
  return text;
}

std::string EvaluationText(const EvaluationResult& result) {
  if (result.tasks().empty()) {
    if (!std::isfinite(result.logloss())) return kNoNumbersText;
    return absl::StrFormat("%s, logloss %.4f", AucText(result), result.logloss());
  }
  std::string text;
  for (const TaskResult& task : result.tasks()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", TaskText(task));
  }
  return text;
}

std::string JobJson(const JobStatus& status) { return Line(ToJson(status)); }

std::string JobSummary(const JobStatus& s) {
  std::string text = absl::StrCat("job ", s.name(), " ", StateName(s.state()));
  if (s.state() != SUCCEEDED && !s.conditions().empty()) {
    absl::StrAppend(&text, ": ", s.conditions().rbegin()->message());
  }
  absl::StrAppend(&text, "\n");
  if (s.has_result() && s.result().examples() > 0) {
    absl::StrAppendFormat(&text, "  %s on %s held-out examples (step %s)\n",
                          EvaluationText(s.result()), WithCommas(s.result().examples()),
                          WithCommas(s.result().step()));
  }
  if (s.train_seconds() > 0 && s.examples() > 0) {
    absl::StrAppend(&text, "  trained on ", WithCommas(s.examples()), " examples in ",
                    Duration(s.train_seconds()), ", ",
                    WithCommas(std::llround(std::max(0.0, ExamplesPerSecond(s)))), " examples/s\n");
  }
  if (s.has_train_input()) text += ListingText("trained from", s.train_input());
  if (s.has_eval_input()) text += ListingText("evaluated on", s.eval_input());
  if (s.bad_lines() > 0) {
    absl::StrAppend(&text, "  ", WithCommas(s.bad_lines()), " bad lines were skipped\n");
  }
  if (s.refused_rows() > 0) {
    absl::StrAppend(&text, RefusedText(s));
  }
  if (s.lost_local_steps() > 0) {
    absl::StrAppend(&text, "  at most ", WithCommas(s.lost_local_steps()),
                    " local steps were lost with workers, and done again\n");
  }
  if (s.clipped_rows() > 0) {
    absl::StrAppend(&text, "  ", WithCommas(s.clipped_rows()), " row updates were clipped\n");
  }
  if (s.has_life_cycle()) absl::StrAppend(&text, LifeCycleText(s.life_cycle()));
  if (s.rollbacks() > 0) {
    absl::StrAppend(&text, "  rolled back to a checkpoint ", s.rollbacks(), " times\n");
  }
  if (!s.checkpoint().empty()) absl::StrAppend(&text, "  checkpoint ", s.checkpoint(), "\n");
  if (!s.predictions().empty()) absl::StrAppend(&text, "  predictions ", s.predictions(), "\n");
  if (!s.model_hash().empty()) absl::StrAppend(&text, "  model hash ", s.model_hash(), "\n");
  return text;
}

std::string JobDetails(const JobStatus& s) {
  std::string text = JobSummary(s);
  absl::StrAppend(&text, "  job ", s.job(), ", generation ", s.generation(), ", ", s.servers(),
                  " servers, ", s.workers(), " workers\n");
  absl::StrAppend(&text, "  step ", WithCommas(s.step()), " of ", WithCommas(s.total_steps()), " (",
                  Share(s.step(), s.total_steps()), ")\n");
  if (s.has_reserved()) {
    absl::StrAppend(&text, "  each server keeps ", NeedText(s.reserved()), " for it");
    if (s.estimated_rows() > 0) {
      absl::StrAppend(&text, ", an estimate with ", WithCommas(s.estimated_rows()),
                      " rows of features: spec.storage.dramBytesPerServer is not set");
    }
    absl::StrAppend(&text, "\n");
  }
  if (s.state() == RUNNING) {
    absl::StrAppend(&text, "  ", WithCommas(std::llround(std::max(0.0, s.examples_per_second()))),
                    " examples/s, ", TrainingText(s, ", AUC"), " while training\n");
  }
  if (s.checkpoint_bytes() > 0) {
    absl::StrAppend(&text, "  a checkpoint is being written: ", CheckpointText(s), "\n");
  }
  const bool done = s.state() == SUCCEEDED || s.state() == CANCELLED;
  if (done && !s.conditions().empty()) {
    absl::StrAppend(&text, "  what happened until it ended; nothing of it is to be done now:\n");
  }
  for (const JobCondition& c : s.conditions()) {
    absl::StrAppend(&text, "  at ", ClockText(c.time_unix_ms()), " ", c.reason(), ": ", c.message(),
                    "\n");
  }
  for (const Concern& c : s.concerns()) {
    absl::StrAppend(&text, "  now, since ", ClockText(c.since_unix_ms()), ": ", c.reason(), " ",
                    c.who(), ": ", c.known_by(), c.remedy().empty() ? "" : "; ", c.remedy(), "\n");
  }
  return text;
}

std::string JobTable(const ListJobsReply& jobs) {
  if (jobs.jobs().empty()) return "no jobs\n";
  std::vector<TextRow> rows = {{"JOB", "NAME", "STATE", "DONE", "EXAMPLES", "EXAMPLES/S", "AUC"}};
  for (const JobStatus& s : jobs.jobs()) {
    rows.push_back({absl::StrCat(s.job()), s.name(), StateName(s.state()),
                    Share(s.step(), s.total_steps()), WithCommas(s.examples()),
                    WithCommas(std::llround(std::max(0.0, ExamplesPerSecond(s)))), Quality(s)});
  }
  return TextTable(rows);
}

std::string JobListJson(const ListJobsReply& jobs) {
  Json list = Json::array();
  for (const JobStatus& s : jobs.jobs()) list.push_back(ToJson(s));
  return Line(list);
}

std::string ClusterTable(const ClusterStatus& cluster) {
  if (cluster.nodes().empty()) return "no servers or workers\n";
  std::vector<TextRow> rows = {{"NODE", "ROLE", "STATE", "PID", "DATA", "METRICS"}};
  for (const NodeStatus& n : cluster.nodes()) {
    rows.push_back({n.name(), n.role() == SERVER ? "server" : "worker", n.alive() ? "up" : "lost",
                    absl::StrCat(n.pid()), n.data_address().empty() ? "-" : n.data_address(),
                    n.metrics_address().empty() ? "-" : n.metrics_address()});
  }
  std::string text = TextTable(rows);
  for (const NodeStatus& n : cluster.nodes()) {
    if (n.quarantined().empty()) continue;
    absl::StrAppend(&text, n.name(), " keeps ", n.quarantined_size(),
                    n.quarantined_size() == 1 ? " job" : " jobs",
                    " that the scheduler does not know: strata nodes --quarantined\n");
  }
  return text;
}

std::string ClusterJson(const ClusterStatus& cluster) {
  Json nodes = Json::array();
  for (const NodeStatus& n : cluster.nodes()) {
    nodes.push_back(Json{{"name", n.name()},
                         {"role", n.role() == SERVER ? "server" : "worker"},
                         {"alive", n.alive()},
                         {"pid", n.pid()},
                         {"cores", n.cores()},
                         {"dataAddress", TextOrNull(n.data_address())},
                         {"metricsAddress", TextOrNull(n.metrics_address())},
                         {"lastSeenUnixMs", n.last_seen_unix_ms()},
                         {"quarantined", n.quarantined_size()}});
  }
  const int64_t expires = cluster.certificate_not_after_unix_ms();
  return Line(Json{{"schedulerVersion", cluster.scheduler_version()},
                   {"insecure", cluster.insecure()},
                   {"certificateNotAfterUnixMs", expires == 0 ? Json(nullptr) : Json(expires)},
                   {"nodes", nodes}});
}

}  // namespace strata
