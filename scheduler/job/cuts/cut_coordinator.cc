#include "scheduler/job/cuts/cut_coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/position.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"

namespace strata::scheduler {
namespace {

// Async: CutBook.last.
constexpr uint64_t kAsked = 1;
constexpr uint64_t kTaken = 2;

}  // namespace

CutCoordinator::CutCoordinator(CutConfig config, CutBook book)
    : config_(std::move(config)), book_(std::move(book)) {
  if (book_.next_cut() == 0) book_.set_next_cut(1);
  if (book_.lookahead() == 0) book_.set_lookahead(kLookahead);
  if (book_.margin() == 0) book_.set_margin(kMargin);
  // The pause before a retry was one of another process's clock: its restart was pause enough.
  book_.set_retry_unix_ms(0);
}

const CutRecord* CutCoordinator::Find(uint64_t cut) const {
  for (const CutRecord& c : book_.pending()) {
    if (c.cut() == cut) return &c;
  }
  return nullptr;
}

uint64_t CutCoordinator::OverThrough() const {
  if (STRATA_MUTATION("cut.end_is_not_told")) return 0;
  for (const CutRecord& c : book_.pending()) {
    if (!c.has_manifest()) return c.cut() - 1;  // what has one, all servers have taken
  }
  return book_.next_cut() - 1;
}

const CheckpointRecord* CutCoordinator::AtStep(uint64_t step) const {
  for (const CheckpointRecord& c : book_.complete()) {
    if (c.step() == step) return &c;
  }
  return nullptr;
}

const CheckpointRecord* CutCoordinator::NewestOnDisk() const {
  for (int i = book_.complete_size() - 1; i >= 0; --i) {
    if (!book_.complete(i).folder().empty()) return &book_.complete(i);
  }
  return nullptr;
}

const CheckpointRecord* CutCoordinator::Last() const {
  if (config_.bsp) return book_.last() == 0 ? nullptr : AtStep(book_.last());
  // Cuts have no steps, and one that was complete before is not of all windows.
  if (book_.last() != kTaken || book_.complete().empty()) return nullptr;
  return &book_.complete(book_.complete_size() - 1);
}

uint64_t CutCoordinator::BaseCut(uint64_t generation) const {
  const CheckpointRecord* newest = NewestOnDisk();
  const bool follows = newest != nullptr && newest->generation() == generation &&
                       newest->increments() + 1 < config_.full_every;
  return follows ? newest->cut() : 0;
}

CutRecord* CutCoordinator::Ask(uint64_t generation, uint64_t step) {
  if (config_.bsp) {
    for (CutRecord& c : *book_.mutable_pending()) {
      if (c.step() == step) return &c;
    }
  }
  CutRecord* cut = book_.add_pending();
  cut->set_cut(book_.next_cut());
  book_.set_next_cut(book_.next_cut() + 1);
  cut->set_step(step);
  cut->set_generation(generation);
  if (!config_.directory.empty()) {
    cut->set_folder(absl::StrCat(config_.directory, "/",
                                 CheckpointFolderName(config_.bsp ? step : cut->cut())));
  }
  return cut;
}

void CutCoordinator::WantManual() {
  book_.set_manual(true);
  if (book_.last() != 0) book_.set_retry_unix_ms(0);
}

void CutCoordinator::WantAt(uint64_t step) {
  if (step != 0 && AtStep(step) == nullptr) book_.set_wanted(step);
}

void CutCoordinator::WantLast(uint64_t step) {
  book_.set_last(config_.bsp ? step : kAsked);
  book_.set_wanted(0);
  if (!config_.bsp) return;
  for (int i = book_.pending_size() - 1; i >= 0; --i) {
    CutRecord& cut = *book_.mutable_pending(i);
    if (cut.step() <= step || cut.has_manifest()) continue;
    if (cut.manual()) book_.set_manual(true);
    words_.erase(cut.cut());
    book_.mutable_pending()->erase(book_.pending().begin() + i);
  }
}

void CutCoordinator::Plan(uint64_t generation, uint64_t progress, bool ready, int64_t now_ms,
                          int removals) {
  const bool may_retry = book_.retry_unix_ms() <= now_ms && !GivenUp();
  int unfinished = removals;
  for (const CutRecord& cut : book_.pending()) unfinished += cut.has_manifest();
  const bool periodic = config_.every_steps > 0 && !config_.directory.empty() &&
                        book_.last() == 0 && unfinished < kMostUnfinished;
  if (config_.bsp) {
    PlanBsp(generation, progress, may_retry, periodic);
  } else if (ready && may_retry &&
             (book_.pending_size() == 0 || STRATA_MUTATION("cut.two_at_a_time"))) {
    PlanAsync(generation, progress, periodic);
  }
}

void CutCoordinator::PlanBsp(uint64_t generation, uint64_t clock, bool may_retry, bool periodic) {
  const uint64_t every = config_.every_steps;
  const bool training = book_.last() == 0;
  if (periodic) {
    uint64_t step = (clock / every + 1) * every;
    for (uint32_t i = 0; i < book_.lookahead() && step < config_.total_steps; ++i, step += every) {
      if (AtStep(step) == nullptr) Ask(generation, step)->set_periodic(true);
    }
  }
  if (may_retry) {
    if (!training && AtStep(book_.last()) == nullptr) Ask(generation, book_.last())->set_last(true);
    if (book_.wanted() != 0 && AtStep(book_.wanted()) == nullptr) {
      Ask(generation, book_.wanted())->set_wanted(true);
    }
    book_.set_wanted(AtStep(book_.wanted()) == nullptr ? book_.wanted() : 0);
  }
  if (book_.manual()) {
    const uint64_t end = training ? config_.total_steps : book_.last();
    const uint64_t step = std::min(clock + book_.margin(), end);
    if (AtStep(step) == nullptr && (training || may_retry)) {
      Ask(generation, step)->set_manual(true);
      book_.set_manual(false);
    }
  }
}

void CutCoordinator::PlanAsync(uint64_t generation, uint64_t windows, bool may_be_periodic) {
  const uint64_t every = config_.every_steps;
  // After a roll-back servers count from the checkpoint on.
  if (windows < book_.periodic_at() && every > 0) {
    book_.set_periodic_at(windows - windows % every);
  }
  const bool periodic = may_be_periodic && windows >= book_.periodic_at() + every;
  const bool last = book_.last() == kAsked;
  if (!periodic && !last && !book_.manual()) return;
  CutRecord* cut = Ask(generation, 0);
  cut->set_periodic(periodic);
  cut->set_last(last);
  cut->set_manual(book_.manual());
  book_.set_manual(false);
  if (periodic) book_.set_periodic_at(windows - windows % every);
}

void CutCoordinator::Report(uint32_t server, const CutReport& report) {
  const CutRecord* cut = Find(report.cut());
  if (cut == nullptr || cut->has_manifest() || server >= config_.servers) return;
  if (report.state() == CutReport::STATE_UNSPECIFIED) return;
  words_[report.cut()][server] = report;
}

void CutCoordinator::ForgetServer(uint32_t server) {
  if (STRATA_MUTATION("cut.word_of_the_dead")) return;
  for (auto& [cut, words] : words_) words.erase(server);
}

void CutCoordinator::Erase(uint64_t cut) {
  words_.erase(cut);
  for (int i = 0; i < book_.pending_size(); ++i) {
    if (book_.pending(i).cut() != cut) continue;
    book_.mutable_pending()->erase(book_.pending().begin() + i);
    return;
  }
}

// Async: a cut that was given up through no fault of its own.
void CutCoordinator::WantAgain(const CutRecord& cut) {
  if (STRATA_MUTATION("cut.number_comes_again")) book_.set_next_cut(cut.cut());
  if (cut.manual()) book_.set_manual(true);
  if (cut.periodic() && !config_.bsp) {
    const uint64_t at = book_.periodic_at();
    book_.set_periodic_at(at > config_.every_steps ? at - config_.every_steps : 0);
  }
}

// Not random: a state machine repeats itself.
int64_t CutCoordinator::RetryMs(uint64_t cut) const {
  constexpr uint32_t kMostDoublings = 10;
  const uint32_t doublings = std::min(book_.retries(), kMostDoublings);
  const int64_t wait = std::min(kMostRetryMs, kFirstRetryMs << doublings);
  constexpr uint64_t kParts = 1024;
  const uint64_t drawn = Mix64(config_.spread ^ Mix64(cut)) % kParts;
  return wait / 2 + static_cast<int64_t>(static_cast<uint64_t>(wait) * drawn / kParts);
}

void CutCoordinator::Rearm(Result& result, int64_t now_ms) {
  const CutRecord& cut = result.cut;
  const bool refused = result.outcome == Outcome::kRefused;
  if (refused && !config_.bsp) {
    WantAgain(cut);
    book_.set_retry_unix_ms(now_ms + kPauseMs);
  } else if (refused) {
    if (cut.manual()) {
      book_.set_manual(true);
      book_.set_margin(std::min(kMaxMargin, book_.margin() * 2));
    }
    if (cut.periodic()) book_.set_lookahead(std::min(kMaxLookahead, book_.lookahead() * 2));
  }
  // Bsp: servers are past the only step that would do.
  if (refused) result.passes = !config_.bsp;
  if (!cut.last() && !cut.wanted()) return;
  const bool passes = result.passes && !STRATA_MUTATION("cut.last_is_given_up");
  book_.set_failures(passes ? 0 : book_.failures() + 1);
  result.retry_ms = RetryMs(cut.cut());
  book_.set_retries(book_.retries() + 1);
  if (refused && !config_.bsp) result.retry_ms = std::max(result.retry_ms, kPauseMs);
  book_.set_retry_unix_ms(now_ms + result.retry_ms);
  if (cut.wanted()) book_.set_wanted(cut.step());
}

void CutCoordinator::Writing(uint64_t cut, const Manifest& manifest) {
  for (CutRecord& c : *book_.mutable_pending()) {
    if (c.cut() == cut) *c.mutable_manifest() = manifest;
  }
}

CutCoordinator::Result CutCoordinator::WritingFailed(uint64_t cut, const absl::Status& why,
                                                     int64_t now_ms) {
  Result result{.outcome = Outcome::kFailed, .message = std::string(why.message())};
  result.passes = MayPass(why.code());
  const CutRecord* found = Find(cut);
  if (found == nullptr) return result;
  result.cut = *found;
  result.files.assign(found->manifest().files().begin(), found->manifest().files().end());
  Erase(cut);
  Rearm(result, now_ms);
  return result;
}

void CutCoordinator::Complete(uint64_t cut, CheckpointRecord checkpoint) {
  if (const CutRecord* found = Find(cut); found != nullptr) {
    if (found->wanted() || found->last()) {
      book_.set_failures(0);
      book_.set_retries(0);
    }
    if (found->wanted() && book_.wanted() == found->step()) book_.set_wanted(0);
    if (found->last() && !config_.bsp) book_.set_last(kTaken);
    if (found->manual()) book_.set_margin(std::max(kMargin, book_.margin() / 2));
  }
  Erase(cut);
  auto& complete = *book_.mutable_complete();
  int at = 0;
  while (at < complete.size() && complete[at].step() < checkpoint.step()) ++at;
  if (at < complete.size() && complete[at].step() == checkpoint.step()) {
    complete[at] = std::move(checkpoint);
    return;
  }
  *complete.Add() = std::move(checkpoint);
  std::rotate(complete.pointer_begin() + at, complete.pointer_end() - 1, complete.pointer_end());
}

std::vector<CutCoordinator::Result> CutCoordinator::Abort() {
  std::vector<Result> dropped;
  for (const CutRecord& cut : book_.pending()) {
    if (cut.has_manifest()) continue;
    Result result{.cut = cut};
    for (const auto& [server, word] : words_[cut.cut()]) {
      result.files.insert(result.files.end(), word.files().begin(), word.files().end());
    }
    dropped.push_back(std::move(result));
  }
  for (const Result& result : dropped) {
    Erase(result.cut.cut());
    WantAgain(result.cut);
  }
  return dropped;
}

void CutCoordinator::TrainingAgain() {
  book_.set_last(0);
  book_.set_wanted(0);
  book_.set_failures(0);
  book_.set_retries(0);
  book_.set_retry_unix_ms(0);
  for (CutRecord& cut : *book_.mutable_pending()) {  // what is being written
    cut.set_last(false);
    cut.set_wanted(false);
  }
}

void CutCoordinator::Over() {
  for (int i = book_.pending_size() - 1; i >= 0; --i) {
    if (!book_.pending(i).has_manifest()) {
      book_.mutable_pending()->erase(book_.pending().begin() + i);
    }
  }
  words_.clear();
  for (CheckpointRecord& c : *book_.mutable_complete()) {
    c.clear_closed_below();
    c.clear_closed_tasks();
    c.clear_lanes();
  }
}

std::vector<CheckpointRecord> CutCoordinator::TakeExcess(uint64_t best_step) {
  std::vector<CheckpointRecord> taken;
  uint32_t kept = 0;
  int hashes = 0;
  for (int i = book_.complete_size() - 1; i >= 0; --i) {
    const CheckpointRecord& c = book_.complete(i);
    if (c.step() == best_step && best_step != 0) continue;
    const bool excess =
        c.folder().empty() ? ++hashes > kMaxHashes : ++kept > std::max<uint32_t>(1, config_.keep);
    if (!excess) continue;
    if (!c.folder().empty()) taken.push_back(c);
    book_.mutable_complete()->erase(book_.complete().begin() + i);
  }
  std::reverse(taken.begin(), taken.end());
  return taken;
}

std::vector<CheckpointRecord> CutCoordinator::TakeAfter(uint64_t step) {
  std::vector<CheckpointRecord> taken;
  while (book_.complete_size() > 0 && book_.complete(book_.complete_size() - 1).step() > step) {
    const CheckpointRecord& c = book_.complete(book_.complete_size() - 1);
    if (!c.folder().empty()) taken.push_back(c);
    book_.mutable_complete()->RemoveLast();
  }
  return taken;
}

void CutCoordinator::Forget(const std::string& folder) {
  for (int i = 0; i < book_.complete_size(); ++i) {
    if (book_.complete(i).folder() != folder) continue;
    book_.mutable_complete()->erase(book_.complete().begin() + i);
    return;
  }
}

}  // namespace strata::scheduler
