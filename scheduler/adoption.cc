#include "scheduler/adoption.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/job/checks/unknown_fields.h"
#include "scheduler/nodes/hearing.h"

namespace strata::scheduler {
namespace {

using google::protobuf::util::MessageDifferencer;

std::string Describe(const QuarantinedJob& job) {
  return absl::StrCat("job ", job.name(), " (", job.job_uid(), ")");
}

// What a job has from its first day to its last.
bool SameJob(const KeptJob& a, const KeptJob& b) {
  return MessageDifferencer::Equals(a.spec(), b.spec()) &&
         MessageDifferencer::Equals(a.shape(), b.shape()) &&
         a.index_fingerprint() == b.index_fingerprint();
}

// What a generation has.
bool SamePlaces(const KeptJob& a, const KeptJob& b) {
  return a.map_epoch() == b.map_epoch() && a.start_step() == b.start_step() &&
         a.shards_size() == b.shards_size() &&
         std::equal(a.shards().begin(), a.shards().end(), b.shards().begin(),
                    [](const ShardAssignment& x, const ShardAssignment& y) {
                      return MessageDifferencer::Equals(x, y);
                    });
}

// Who has the shards of the newest generation, by server index; "": nobody that is heard of.
std::vector<std::string> Holders(const KeptJob& note, const std::vector<KeptCopy>& copies) {
  std::vector<std::string> holders(note.spec().spec().replicas().servers());
  for (const KeptCopy& copy : copies) {
    const KeptJob& its = *copy.note;
    if (its.generation() != note.generation() || its.server_index() >= holders.size()) continue;
    holders[its.server_index()] = copy.node;
  }
  return holders;
}

// Why the job cannot go on with what servers have; "": it can.
std::string WhyNot(const KeptJob& note, const std::vector<std::string>& holders,
                   const std::vector<CheckpointRecord>& own) {
  const JobSpec& spec = note.spec().spec();
  if (spec.training().mode() != "bsp") {
    return absl::StrCat("which windows of mode ", spec.training().mode(),
                        " are done was in the scheduler's lost records alone");
  }
  if (spec.storage().durability() == "memory") {
    return "at spec.storage.durability memory servers keep no rows of it";
  }
  if (spec.storage().replicas() > 1) {
    return "which copies of its shards have all that was committed was in the scheduler's lost "
           "records alone";
  }
  for (const CheckpointRecord& c : own) {
    if (c.generation() <= note.generation()) continue;
    return absl::StrCat("what its servers keep is of generation ", note.generation(),
                        ", which generation ", c.generation(), " came after");
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].empty()) missing.push_back(absl::StrCat(i + 1));
  }
  if (missing.empty() && !holders.empty()) return "";
  return absl::StrCat("no server that is heard of keeps part ", absl::StrJoin(missing, ", "),
                      " of ", holders.size(), " of its generation ", note.generation());
}

}  // namespace

absl::StatusOr<KeptJob> AgreedNote(absl::string_view cluster, const std::vector<KeptCopy>& copies) {
  const auto refuse = [](const KeptCopy& copy, absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(Describe(copy.kept), " cannot be adopted: ", why));
  };
  for (const KeptCopy& copy : copies) {
    const std::string& its = copy.kept.cluster_id();
    if (its.empty() || its == cluster) continue;
    return refuse(copy, absl::StrCat("it is of cluster ", its, ", and this one is cluster ",
                                     cluster, "; adopt it there"));
  }
  const KeptJob* newest = nullptr;
  for (const KeptCopy& copy : copies) {
    if (!copy.note && copy.why.empty()) {
      return refuse(copy,
                    absl::StrCat("server ", copy.node,
                                 " reads its note of it yet; adopt it again when that is "
                                 "done, and see whether its files answer if that takes long"));
    }
    if (!copy.note || copy.note->index_fingerprint() == 0) {
      return refuse(copy, absl::StrCat("server ", copy.node, " has no whole note of it (",
                                       copy.why.empty() ? "of which data it trains on" : copy.why,
                                       "); strata nodes purge ", copy.node,
                                       " removes that copy, and without it the rest may do"));
    }
    if (const std::string unknown = UnknownField(*copy.note); !unknown.empty()) {
      return refuse(copy, absl::StrCat("server ", copy.node,
                                       " is newer than this scheduler, which "
                                       "does not know ",
                                       unknown,
                                       " of its note; adopt it with the "
                                       "version of strata that the server is of"));
    }
    if (newest == nullptr || copy.note->generation() > newest->generation()) newest = &*copy.note;
  }
  for (const KeptCopy& copy : copies) {
    const bool same =
        copy.note->generation() != newest->generation() || SamePlaces(*copy.note, *newest);
    if (same && SameJob(*copy.note, *newest)) continue;
    return refuse(copy, absl::StrCat("servers ", copies.front().node, " and ", copy.node,
                                     " noted different things of it; look at both, and purge the "
                                     "copy that is wrong"));
  }
  return *newest;
}

absl::StatusOr<Adoption> JudgeAdoption(const KeptJob& note, const std::vector<KeptCopy>& copies,
                                       const std::vector<CheckpointRecord>& own,
                                       const std::string& damaged,
                                       const absl::Status& other_format) {
  Adoption adoption;
  const JobSpec& spec = note.spec().spec();
  const std::vector<std::string> holders = Holders(note, copies);
  const std::string why = WhyNot(note, holders, own);
  if (why.empty()) {
    adoption.generation = note.generation();
    adoption.servers = holders;
    adoption.text =
        absl::StrCat("goes on with what ", absl::StrJoin(holders, ", "), " kept of generation ",
                     note.generation(), "; no step is given up");
    if (spec.evaluation().patience() == 0) return adoption;
    absl::StrAppend(&adoption.text,
                    ", but earlier evaluations are lost: spec.evaluation.patience "
                    "counts from here");
    return adoption;
  }
  if (!other_format.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(Describe(copies.front().kept),
                                                      " cannot be adopted: ", why, ", and ",
                                                      other_format.message()));
  }
  if (own.empty()) {
    const std::string& directory = spec.checkpoint().directory();
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(copies.front().kept), " cannot be adopted: ", why, ", and it has no checkpoint ",
        directory.empty() ? std::string("(spec.checkpoint.directory is not set)")
                          : absl::StrCat("of its own in ", directory),
        damaged.empty() ? std::string() : absl::StrCat(" that is whole (", damaged, ")"),
        "; start the servers that had its shards again and try once more, or purge what ",
        copies.front().node, " keeps (strata nodes purge) and submit the job anew"));
  }
  adoption.from = own.back();
  adoption.generation = note.generation();
  for (const CheckpointRecord& c : own) {
    adoption.generation = std::max(adoption.generation, c.generation());
  }
  adoption.generation += Hearing::kGenerations;
  const bool bsp = spec.training().mode() == "bsp";
  adoption.text =
      absl::StrCat("goes on from its newest checkpoint ", own.back().folder(), ", as ", why,
                   "; what was trained after ", bsp ? "step " : "cut ", own.back().step(),
                   " is given up, and ", bsp ? "trained again" : "its data are read again");
  return adoption;
}

}  // namespace strata::scheduler
