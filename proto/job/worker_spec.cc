#include "proto/job/worker_spec.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/spec_checks.h"

namespace strata::spec {
namespace {

constexpr absl::string_view kCuda = "cuda:";

absl::Status CheckUuid(absl::string_view uuid) {
  if (uuid.empty()) {
    return Bad("spec.worker.device",
               "'cuda:' names no GPU; add its UUID as `nvidia-smi -L` shows it, or give auto");
  }
  for (const char c : uuid) {
    if (absl::ascii_isalnum(c) || c == '-') continue;
    return Bad("spec.worker.device",
               absl::StrCat("'", kCuda, uuid,
                            "' is not cuda: and a UUID as `nvidia-smi -L` shows "
                            "it: letters, digits and '-'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveWorker(WorkerSpec& worker) {
  if (worker.device().empty()) worker.set_device("auto");
  if (worker.precision().empty()) worker.set_precision("fp32");
  const std::string& device = worker.device();
  if (absl::StartsWith(device, kCuda)) {
    STRATA_RETURN_IF_BAD(CheckUuid(absl::string_view(device).substr(kCuda.size())));
  } else {
    STRATA_RETURN_IF_BAD(
        CheckChoice("spec.worker.device", device, {"auto", "cpu", "cuda:UUID", "host"}));
  }
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.worker.precision", worker.precision(), {"fp32", "tf32", "bf16"}));
  if (device == "cpu" && worker.precision() != "fp32") {
    return Bad("spec.worker.precision",
               absl::StrCat(worker.precision(),
                            " is a GPU's, but spec.worker.device is cpu, which "
                            "computes in fp32; give fp32, or another device"));
  }
  return absl::OkStatus();
}

}  // namespace strata::spec
