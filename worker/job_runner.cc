#include "worker/job_runner.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ops/cuda/api/api.h"
#include "ops/mxcsr.h"
#include "proto/job/checks/unknown_fields.h"
#include "proto/runtime/files/job_places.h"
#include "proto/wire/session_error.h"
#include "worker/data/files/file_list.h"
#include "worker/data/reading/batch_source.h"
#include "worker/data/reading/held_out.h"
#include "worker/training_session.h"

namespace strata {
namespace {

class Runner {
 public:
  explicit Runner(const JobRunnerOptions& options) : o_(options) {}

  void Stop() {
    absl::MutexLock lock(&mu_);
    *stop_ = true;
    if (session_ != nullptr) session_->Stop();
  }
  // Set by Stop.
  JobWork::Flag stopped() const { return stop_; }

  void Update(const WorkerJobDirective& directive, SessionId session) {
    absl::MutexLock lock(&mu_);
    latest_ = directive;
    if (directive.has_train_index()) {  // the scheduler has it: no need to report it again
      indexes_.clear_train_index();
      indexes_.clear_eval_index();
    }
    member_ = session;
    if (session_ == nullptr) return;
    if (directive.generation() == running_generation_) {
      session_->Update(directive);
    } else {
      session_->Stop();
    }
  }

  void Heard() {
    absl::MutexLock lock(&mu_);
    heard_ = true;
  }

  WorkerJobReport Report() const {
    absl::MutexLock lock(&mu_);
    WorkerJobReport report = indexes_;
    report.set_job(o_.job.value);
    report.set_job_uid(latest_.job_uid());
    // Before anything was trained there is only the index to report, of the generation that asked.
    report.set_generation(stats_ != nullptr ? running_generation_ : latest_.generation());
    report.set_ready(stats_ != nullptr);
    if (stats_ != nullptr) stats_->Report(o_.timer->Now(), &report);
    if (!fatal_.empty()) report.set_fatal(fatal_);
    return report;
  }

  StageSeconds Stages() const {
    absl::MutexLock lock(&mu_);
    return stats_ != nullptr ? stats_->stages().Seconds() : StageSeconds();
  }

  uint64_t RowsThere() const {
    absl::MutexLock lock(&mu_);
    return stats_ != nullptr ? stats_->rows_there() : 0;
  }

  // Until Stop.
  void Loop() {
    ops::RestoreExactFloatState();
    while (true) {
      bool index = false;
      WorkerJobDirective directive;
      SessionId member;
      {
        absl::MutexLock lock(&mu_);
        const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return *stop_ || WantsIndex() || WantsTraining();
        };
        mu_.Await(absl::Condition(&some));
        if (*stop_) return;
        index = WantsIndex();
        directive = latest_;
        member = member_;
      }
      if (index) {
        MakeIndex(directive);
      } else {
        Train(directive, member);
      }
    }
  }

 private:
  bool WantsIndex() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return latest_.make_index() && !indexed_ && fatal_.empty();
  }
  bool WantsTraining() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return latest_.has_train_index() && latest_.shards_size() > 0 &&
           latest_.server_addresses_size() > 0 &&
           (latest_.generation() > running_generation_ || HasLanesAgain()) && fatal_.empty();
  }
  bool HasLanesAgain() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return lanes_gone_ && heard_ && latest_.generation() == running_generation_ &&
           latest_.lanes_size() > 0;
  }

  // What a job reads: the files that its paths, folders and globs mean.
  struct InputFiles {
    std::vector<std::string> train, eval;
  };
  absl::StatusOr<InputFiles> ListInput(const JobSpec& spec) const {
    absl::Status s = CheckFiles("spec.data.train", spec.data().train());
    if (s.ok()) s = CheckFiles("spec.data.eval", spec.data().eval());
    if (!s.ok()) return s;
    const FileListOptions options = {
        .may_read = [this](const std::string& path) { return o_.paths.CheckPath(path); },
        .written = FilesWritten(spec)};
    auto train = ListFiles("spec.data.train", PathsOf(spec.data().train()), options);
    if (!train.ok()) return train.status();
    auto eval = ListFiles("spec.data.eval", PathsOf(spec.data().eval()), options);
    if (!eval.ok()) return eval.status();
    return InputFiles{*std::move(train), *std::move(eval)};
  }
  template <typename Paths>
  static std::vector<std::string> PathsOf(const Paths& paths) {
    return {paths.begin(), paths.end()};
  }
  // Those that the index pass found.
  static InputFiles FilesOf(const WorkerJobDirective& directive) {
    InputFiles files;
    for (const InputFile& file : directive.train_index().files())
      files.train.push_back(file.path());
    for (const InputFile& file : directive.eval_index().files()) files.eval.push_back(file.path());
    return files;
  }

  // Whether this program can do what the job says, and may read and write where it does.
  absl::Status CheckJob(const WorkerJobDirective& directive, const InputFiles& input) const {
    const absl::Status known = CheckKnown(directive.spec(), "this worker", "the scheduler");
    return known.ok() ? CheckPaths(directive.spec().spec(), input) : known;
  }
  absl::Status CheckPaths(const JobSpec& spec, const InputFiles& input) const {
    absl::Status s = CheckFiles("spec.data.train", input.train);
    if (s.ok()) s = CheckFiles("spec.data.eval", input.eval);
    for (int i = 0; s.ok() && i < spec.fields_size(); ++i) {
      s = o_.paths.Check(absl::StrCat("spec.fields[", i, "].vocabulary.file"),
                         spec.fields(i).vocabulary().file());
    }
    if (s.ok()) s = o_.paths.Check("spec.output.metrics", spec.output().metrics());
    if (s.ok()) s = o_.paths.Check("spec.output.predictions", spec.output().predictions());
    // The last look: at submit some of them may not have been seen, nor what a glob stands for.
    JobSpec files;
    for (const std::string& file : input.train) files.mutable_data()->add_train(file);
    for (const std::string& file : input.eval) files.mutable_data()->add_eval(file);
    *files.mutable_fields() = spec.fields();
    files.mutable_output()->set_metrics(spec.output().metrics());
    files.mutable_output()->set_predictions(spec.output().predictions());
    return s.ok() ? CheckJobPlaces(files) : s;
  }
  template <typename Files>
  absl::Status CheckFiles(absl::string_view field, const Files& files) const {
    for (const std::string& file : files) {
      if (file == "-") continue;  // standard input
      if (absl::Status s = o_.paths.Check(field, file); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  template <typename Files>
  absl::StatusOr<InputIndex> BuildIndex(absl::string_view field,
                                        const WorkerJobDirective& directive, const Files& files,
                                        Labels labels, const DataShape& training) {
    const auto& beginnings = directive.vocabulary_beginnings();
    auto index = o_.data->BuildIndex(directive.spec().spec(), {files.begin(), files.end()},
                                     {.beginnings = {beginnings.begin(), beginnings.end()},
                                      .labels = labels,
                                      .training = training,
                                      .cancelled = [stop = stop_] { return stop->load(); }});
    // What is wrong with a file as such; a line in it is found by the file's name.
    if (index.ok() || !absl::StartsWith(index.status().message(), "input file ")) return index;
    return absl::Status(index.status().code(), absl::StrCat(field, ": ", index.status().message()));
  }

  void MakeIndex(const WorkerJobDirective& directive) {
    const JobSpec& spec = directive.spec().spec();
    const DataSpec& data = spec.data();
    const absl::StatusOr<InputFiles> input = ListInput(spec);
    const absl::Status allowed = input.ok() ? CheckJob(directive, *input) : input.status();
    absl::StatusOr<InputIndex> train =
        allowed.ok() ? BuildIndex("spec.data.train", directive, input->train, Labels::kRequired, {})
                     : absl::StatusOr<InputIndex>(allowed);
    absl::StatusOr<InputIndex> eval = InputIndex();
    if (train.ok() && data.eval_size() > 0) {
      eval =
          BuildIndex("spec.data.eval", directive, input->eval, Labels::kOptional, train->shape());
    }
    absl::Status made = train.ok() ? eval.status() : train.status();
    HeldOutLines held_out;
    if (made.ok() && eval->lines() > 0) {
      auto checked = CheckEval(spec, *train, *eval);
      made = checked.status();
      if (checked.ok()) held_out = *std::move(checked);
    }
    absl::MutexLock lock(&mu_);
    indexed_ = true;
    if (!made.ok()) {
      fatal_ = std::string(made.message());
      return;
    }
    *indexes_.mutable_train_index() = *std::move(train);
    if (data.eval_size() > 0) *indexes_.mutable_eval_index() = *std::move(eval);
    if (held_out.bad_lines == 0) return;
    Trouble& trouble = *indexes_.add_troubles();
    trouble.set_reason("HeldOutLinesAreBad");
    trouble.set_message(absl::StrCat(held_out.bad_lines,
                                     " bad lines of spec.data.eval are left out "
                                     "of each evaluation; the first is ",
                                     held_out.first_bad_line));
    trouble.set_since_unix_ms(absl::ToUnixMillis(o_.timer->Now()));
    Log("held_out_lines_are_bad", trouble.message());
  }

  absl::StatusOr<HeldOutLines> CheckEval(const JobSpec& spec, const InputIndex& train,
                                         const InputIndex& eval) {
    auto source = o_.data->Open(spec, eval, train.shape());
    if (!source.ok()) return source.status();
    checked_eval_ = *std::move(source);
    return CheckHeldOut(spec, eval.lines(), checked_eval_.get(),
                        [stop = stop_] { return stop->load(); });
  }

  void Log(absl::string_view event, absl::string_view reason) const {
    if (!o_.log) return;
    o_.log(absl::StrCat(event, " job=", o_.job.value, " reason=\"", reason, "\""));
  }

  void Train(const WorkerJobDirective& directive, SessionId member) {
    auto stats = std::make_unique<TrainingStats>();
    TrainingSessionOptions options;
    options.directive = directive;
    options.member = member;
    options.sequences = o_.sequences;
    options.transport = o_.transport;
    options.caller = o_.caller;
    options.timer = o_.timer;
    options.data = o_.data;
    options.threads = o_.threads;
    options.device = o_.device;
    options.row_path = o_.row_path;
    options.stats = stats.get();
    options.log = [this](absl::string_view event, absl::string_view reason) { Log(event, reason); };
    options.unwanted = [stop = stop_] { return stop->load(); };
    const absl::Status allowed = CheckJob(directive, FilesOf(directive));
    auto session = allowed.ok() ? TrainingSession::Make(options)
                                : absl::StatusOr<std::unique_ptr<TrainingSession>>(allowed);
    checked_eval_.reset();
    {
      absl::MutexLock lock(&mu_);
      running_generation_ = directive.generation();
      lanes_gone_ = false;
      if (!session.ok()) {
        fatal_ = std::string(session.status().message());
        return;
      }
      stats_ = std::move(stats);
      session_ = session->get();
      session_->Update(latest_);  // what came in meanwhile
      if (*stop_ || latest_.generation() != running_generation_) session_->Stop();
    }
    const absl::Status status = (*session)->Run();
    absl::MutexLock lock(&mu_);
    session_ = nullptr;
    if (status.ok()) {
      stats_->OnFinished();
    } else if (wire::IsLanesGone(status)) {
      lanes_gone_ = true;
      heard_ = false;
      Log("lanes_gone", status.message());
    } else if (!absl::IsCancelled(status) && !EndsProcess(status)) {
      stats_->OnFatal(status);
      Log("job_failed", status.message());
    }
  }

  // The job goes on without this process, as if it had been killed.
  bool EndsProcess(const absl::Status& status) const {
    return o_.device != nullptr && o_.device->lost_ends_process && ops::gpu::IsDeviceLost(status);
  }

  const JobRunnerOptions o_;
  // The held-out files as they were checked: what is decompressed stays until a session has it.
  // Of the thread of Loop.
  std::unique_ptr<BatchSource> checked_eval_;
  mutable absl::Mutex mu_;
  // Set under mu_.
  const std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  WorkerJobDirective latest_ ABSL_GUARDED_BY(mu_);
  SessionId member_ ABSL_GUARDED_BY(mu_);
  bool indexed_ ABSL_GUARDED_BY(mu_) = false;
  WorkerJobReport indexes_ ABSL_GUARDED_BY(mu_);
  std::string fatal_ ABSL_GUARDED_BY(mu_);
  uint64_t running_generation_ ABSL_GUARDED_BY(mu_) = 0;
  bool lanes_gone_ ABSL_GUARDED_BY(mu_) = false;             // why its training ended
  bool heard_ ABSL_GUARDED_BY(mu_) = false;                  // the scheduler, since then
  TrainingSession* session_ ABSL_GUARDED_BY(mu_) = nullptr;  // while it runs
  std::unique_ptr<TrainingStats> stats_ ABSL_GUARDED_BY(mu_);
};

// What its owner has of a runner.
class Handle : public JobRunner {
 public:
  explicit Handle(const JobRunnerOptions& options)
      : work_(options.work), runner_(std::make_shared<Runner>(options)) {
    work_->Post(
        options.queue, JobWork::Begins::kPassing, [runner = runner_] { runner->Loop(); },
        runner_->stopped());
  }
  ~Handle() override {
    runner_->Stop();
    work_->Pump();  // it may not have begun
  }

  void Update(const WorkerJobDirective& directive, SessionId session) override {
    runner_->Update(directive, session);
  }
  void Heard() override { runner_->Heard(); }
  WorkerJobReport Report() const override { return runner_->Report(); }
  StageSeconds Stages() const override { return runner_->Stages(); }
  uint64_t RowsThere() const override { return runner_->RowsThere(); }

 private:
  JobWork* const work_;
  const std::shared_ptr<Runner> runner_;
};

}  // namespace

std::unique_ptr<JobRunner> JobRunner::Make(const JobRunnerOptions& options) {
  return std::make_unique<Handle>(options);
}

}  // namespace strata
