// JobMachine: how a run that has trained comes to its end.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/may_pass.h"
#include "scheduler/job/machine.h"
#include "scheduler/job/progress.h"
#include "scheduler/nodes/troubles.h"
#include "scheduler/state/checkpoint_identity.h"

namespace strata::scheduler {
namespace {

// Before the second try to keep the end of a run, and at most; twice as long after each.
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kMostPause = absl::Seconds(30);

}  // namespace

void JobMachine::Succeed(absl::Time now) {
  const CheckpointRecord* last = cuts_->Last();
  if (last == nullptr) return;  // its cut waits to be tried again, or for a worker
  const CheckpointRecord final_cut = *last;
  if (!EndIsKept(final_cut, now)) return;
  state_.set_final_checkpoint(final_cut.folder());
  state_.set_model_hash(final_cut.model_hash());
  if (bsp()) {
    // With patience the best is what is kept: later ones would be taken for the job's result.
    for (const CheckpointRecord& c : cuts_->TakeAfter(state_.final_step())) Remove(c);
  } else {
    state_.set_final_step(state_.total_steps());
  }
  if (!final_cut.folder().empty()) AnswerManual(final_cut);
  // A node that is slow to say so has no trouble any more: everything was written.
  for (const TroubleNews& news : EndTroubles(absl::ToUnixMillis(now), *state_.mutable_troubles())) {
    Say(news.reason, news.message, now);
  }
  End(SUCCEEDED, "Succeeded", absl::StrCat("trained to step ", state_.final_step()), now);
}

// spec.evaluation.patience leaves a step before the last one, whose checkpoint says yet that there
// is more to come. Its manifest is written anew before the job is over; after a restart of the
// scheduler once more, to the same bytes.
bool JobMachine::EndIsKept(const CheckpointRecord& last, absl::Time now) {
  const bool early = bsp() && state_.final_step() < state_.total_steps();
  if (!early || last.folder().empty() || end_.settled) return true;
  if (end_.asked || now < end_.next) return false;
  end_.asked = true;
  EndRunWork work{.job = id(), .folder = last.folder(), .meant = IdentityOf(last)};
  work.end.set_steps(state_.final_step());
  work.end.set_lines(LinesBy(job(), Reads(), state_.final_step()));
  work_.push_back(std::move(work));
  return false;
}

void JobMachine::OnRunEnded(const absl::Status& status, absl::Time now) {
  if (over() || !end_.asked) return;
  end_.asked = false;
  end_.settled = status.ok() || !MayPass(status.code());
  if (status.ok()) return;
  std::string text =
      absl::StrCat("spec.checkpoint.directory: its newest checkpoint cannot say ",
                   "that the run ended at step ", state_.final_step(), ": ", status.message());
  if (end_.settled) {
    absl::StrAppend(&text, "; a job that resumes from it with more files is refused");
  } else {
    const absl::Duration pause =
        std::min(kMostPause, kFirstPause * (1 << std::min(5, end_.failed)));
    ++end_.failed;
    end_.next = now + pause;
    absl::StrAppend(&text, "; the job tries again in ", absl::ToInt64Seconds(pause), " s");
  }
  SayAgain("CheckpointFailed", text, now);
}

}  // namespace strata::scheduler
