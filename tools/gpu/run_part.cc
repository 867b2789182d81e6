#include "tools/gpu/run_part.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "tools/gpu/bars/apply_bar.h"
#include "tools/gpu/bars/coalesce_bar.h"
#include "tools/gpu/bars/gather_bar.h"
#include "tools/gpu/bars/mlp_bar.h"
#include "tools/gpu/check/part_output.h"
#include "tools/gpu/device.h"
#include "tools/gpu/dlrm/bar.h"
#include "tools/gpu/report/bar_line.h"
#include "tools/gpu/table/find_bar.h"
#include "tools/gpu/table/insert_bar.h"

namespace strata::gpu_check {
namespace {

using Say = std::function<void(const std::string&)>;

struct NamedBar {
  const char* name;
  absl::Status (*run)(const BarContext&);
};
constexpr NamedBar kBars[] = {
    {"mlp", &MlpBar},
    {"dlrm", &DlrmBar},
    {"gather", &GatherBar},
    {"apply", &ApplyBar},
    {"coalesce", &CoalesceBar},
    {"find", &FindBar},
    {"find-or-insert", &FindOrInsertBar},
};

int ExitCodeOf(const absl::Status& status, const Say& say) {
  if (status.ok()) return 0;
  say(absl::StrCat(status.message(), "\n"));
  const bool missing = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  return missing ? kPartSkipped : 1;
}

absl::StatusOr<std::unique_ptr<ops::gpu::Blas>> OpenBlasOf(const PartOptions& options,
                                                           ops::gpu::CudaApi* api,
                                                           ops::gpu::Arena* arena) {
  if (options.host) return ops::gpu::MakeHostBlas(api);
  return OpenCheckedBlas(arena, options.blas_library);
}

// Its version and path, or why there is none.
std::string BlasText(const PartOptions& options, ops::gpu::CudaApi* api) {
  auto arena = ops::gpu::Arena::Create(api, ops::gpu::MemoryKind::kDevice, size_t{33} << 20,
                                       "cuBLASLt's workspace");
  if (!arena.ok()) return std::string(arena.status().message());
  const auto blas = OpenBlasOf(options, api, arena->get());
  if (!blas.ok()) return std::string(blas.status().message());
  return absl::StrCat((*blas)->version(), " in ", (*blas)->path());
}

absl::Status TellFacts(const PartOptions& options, ops::gpu::CudaApi* api, const Say& say) {
  const auto facts = DeviceFacts(api);
  if (!facts.ok()) return facts.status();
  for (const auto& [name, value] : *facts) say(FactText(name, value));
  say(FactText("cuBLASLt", BlasText(options, api)));
  return absl::OkStatus();
}

absl::Status RunBar(const NamedBar& bar, const PartOptions& options, ops::gpu::CudaApi* api,
                    const Say& say) {
  auto stream = ops::gpu::MakeStream(api);
  if (!stream.ok()) return stream.status();
  BarContext context;
  context.api = api;
  context.stream = stream->get();
  if (options.host) {
    context.sizes = options.host_batch == 0 ? TinySizes() : BusyHostSizes(options.host_batch);
  }
  context.part_seconds = options.seconds;
  context.open_blas = [&options, api](ops::gpu::Arena* arena) {
    return OpenBlasOf(options, api, arena);
  };
  context.tell = [&](BarLine line) {
    if (options.host) {
      line.path = "host threads";
      line.least_of_copy = line.least_of_probe = 0;
      line.most_ms = line.most_change = 0;
    }
    say(BarText(line));
  };
  return bar.run(context);
}

}  // namespace

int RunPart(const PartOptions& options, const Say& say) {
  const NamedBar* named = nullptr;
  for (const NamedBar& bar : kBars) {
    if (options.name == bar.name) named = &bar;
  }
  if (named == nullptr && options.name != "device") {
    say(absl::StrCat("there is no part ", options.name, "\n"));
    return 2;
  }
  const auto api = OpenCheckedDevice(options.host);
  if (!api.ok()) {
    // What --device of the whole check gives its parts.
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    say(visible == nullptr || *visible == 0
            ? std::string("no device: ")
            : absl::StrCat("no device of those that --device or ", "CUDA_VISIBLE_DEVICES names (",
                           visible, "): "));
    return ExitCodeOf(api.status(), say);
  }
  return ExitCodeOf(named == nullptr ? TellFacts(options, api->get(), say)
                                     : RunBar(*named, options, api->get(), say),
                    say);
}

std::vector<std::string> BarNames() {
  std::vector<std::string> names;
  for (const NamedBar& bar : kBars) names.push_back(bar.name);
  return names;
}

}  // namespace strata::gpu_check
