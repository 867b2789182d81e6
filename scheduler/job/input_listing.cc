#include "scheduler/job/input_listing.h"

#include <cstdint>
#include <optional>
#include <string>

#include "proto/strata/control.pb.h"

namespace strata::scheduler {
namespace {

std::optional<InputListing> ListingOf(const google::protobuf::RepeatedPtrField<std::string>& named,
                                      const InputIndex& index) {
  bool same = named.size() == index.files_size();
  for (int i = 0; same && i < named.size(); ++i) same = named[i] == index.files(i).path();
  if (same || index.files().empty()) return std::nullopt;
  InputListing out;
  out.set_files(static_cast<uint64_t>(index.files_size()));
  for (const InputFile& file : index.files()) out.set_bytes(out.bytes() + file.bytes());
  out.set_first(index.files(0).path());
  out.set_last(index.files(index.files_size() - 1).path());
  return out;
}

}  // namespace

JobIndexRecord ListingsOf(const DataSpec& data, const JobIndexRecord& index) {
  JobIndexRecord out;
  if (const auto train = ListingOf(data.train(), index.train()))
    *out.mutable_train_input() = *train;
  if (const auto eval = ListingOf(data.eval(), index.eval())) *out.mutable_eval_input() = *eval;
  return out;
}

}  // namespace strata::scheduler
