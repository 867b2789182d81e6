#include "scheduler/store/submission_looks.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {

// Of one look; guarded by mu_ but for `cancelled`.
struct SubmissionLooks::State {
  std::string place;  // field and path that are looked at
  std::optional<absl::StatusOr<FoundCheckpoints>> found;
  const std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
};

SubmissionLooks::SubmissionLooks(Timer* timer, PathPolicy paths)
    : timer_(timer), paths_(std::move(paths)), work_(timer) {}

SubmissionLooks::Turn::~Turn() {
  MutexLock lock(&looks_->mu_);
  looks_->names_.erase(name_);
  looks_->directories_.erase(directory_);
}

absl::StatusOr<std::unique_ptr<SubmissionLooks::Turn>> SubmissionLooks::AwaitTurn(
    const std::string& name, const std::string& directory, absl::Time deadline) {
  MutexLock lock(&mu_);
  const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return names_.count(name) + directories_.count(directory) == 0;
  };
  const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || free(); };
  AwaitUntil(timer_, &mu_, absl::Condition(&over), deadline);
  if (stopped_) return absl::UnavailableError("the scheduler is stopping");
  if (!free()) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the folders of another submission of a job ", name,
        directory.empty() ? "" : absl::StrCat(", or with spec.checkpoint.directory ", directory),
        ", are still looked at; try again, or use another name and directory"));
  }
  names_.insert(name);
  if (!directory.empty()) directories_.insert(directory);
  return std::make_unique<Turn>(this, name, directory);
}

absl::Status SubmissionLooks::LookAtPlaces(const SubmitRequest& request, absl::Time deadline,
                                           Asked asked) {
  const Looking look_at = [this, asked](
                              const SubmitRequest& r,
                              const LookingAt& looking_at) -> absl::StatusOr<FoundCheckpoints> {
    if (absl::Status s = CheckPlaces(r, paths_, looking_at, asked); !s.ok()) return s;
    return FoundCheckpoints();
  };
  const absl::Status places = Beside(request, deadline, look_at).status();
  const OutputSpec& output = request.job().spec().output();
  const std::string outputs =
      absl::StrCat(output.metrics(), "\n", output.predictions(), "\n", output.removed());
  if (!places.ok() || outputs == "\n\n" || asked == Asked::kAccepted) return places;
  if (STRATA_MUTATION("places.not_checked_at_submit")) return places;
  const Looking look_at_outputs =
      [](const SubmitRequest& r, const LookingAt& looking_at) -> absl::StatusOr<FoundCheckpoints> {
    if (absl::Status s = CheckOutputs(r, looking_at); !s.ok()) return s;
    return FoundCheckpoints();
  };
  return Beside(request, deadline, look_at_outputs, "outputs\n" + outputs).status();
}

absl::StatusOr<FoundCheckpoints> SubmissionLooks::Look(const SubmitRequest& request,
                                                       absl::Time deadline) {
  return Beside(request, deadline, [this](const SubmitRequest& r, const LookingAt& looking_at) {
    return PrepareCheckpoints(r, paths_, looking_at);
  });
}

absl::StatusOr<FoundCheckpoints> SubmissionLooks::LookForOwn(const SubmitRequest& request,
                                                             const JobIdentity& identity,
                                                             absl::Time deadline) {
  const std::string& directory = request.job().spec().checkpoint().directory();
  if (directory.empty()) return FoundCheckpoints();
  const auto look_at = [identity](const SubmitRequest& r,
                                  const LookingAt& looking_at) -> absl::StatusOr<FoundCheckpoints> {
    const std::string& place = r.job().spec().checkpoint().directory();
    looking_at("spec.checkpoint.directory", place);
    auto own = FindOwnCheckpoints(place, identity);
    if (!own.ok()) return own.status();
    return FoundCheckpoints{.complete = std::move(own->complete),
                            .damaged = std::move(own->damaged),
                            .replaced = {},
                            .data = std::move(own->data),
                            .other_format = std::move(own->other_format)};
  };
  return Beside(request, deadline, look_at);
}

absl::StatusOr<FoundCheckpoints> SubmissionLooks::Beside(const SubmitRequest& request,
                                                         absl::Time deadline,
                                                         const Looking& look_at,
                                                         const std::string& queue) {
  const JobSpec& spec = request.job().spec();
  const absl::Time begin = timer_->Now();
  auto look = std::make_shared<State>();
  look->place = absl::StrCat("spec.checkpoint.directory ", spec.checkpoint().directory());
  work_.Pump();  // those who gave up wait no longer
  if (const JobWork::Load load = work_.Sum(); load.running + load.waiting >= kMostLooks) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the scheduler looks at the folders of ", load.running, " submissions, and ", load.waiting,
        " wait; see whether the mounts that they name answer on its "
        "machine, and try again"));
  }
  const auto work = [this, look, request, look_at] {
    auto found = look_at(request, [this, &look](absl::string_view field, const std::string& path) {
      MutexLock lock(&mu_);
      look->place = absl::StrCat(field, " ", path);
    });
    MutexLock lock(&mu_);
    look->found = std::move(found);
  };
  work_.Post(queue.empty() ? absl::StrCat(spec.checkpoint().directory(), "\n",
                                          spec.model().init_from().checkpoint())
                           : queue,
             JobWork::Begins::kInOrder, work, look->cancelled);
  MutexLock lock(&mu_);
  const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || look->found.has_value();
  };
  AwaitUntil(timer_, &mu_, absl::Condition(&over), deadline);
  if (look->found) return *std::move(look->found);
  *look->cancelled = true;
  if (stopped_) return absl::UnavailableError("the scheduler is stopping");
  return absl::DeadlineExceededError(absl::StrCat(
      look->place, " did not answer for ", absl::FormatDuration(timer_->Now() - begin),
      ": its file system hangs or is slow; see whether its mount answers on the scheduler's "
      "machine, and submit again"));
}

void SubmissionLooks::Stop() {
  MutexLock lock(&mu_);
  stopped_ = true;
}

}  // namespace strata::scheduler
