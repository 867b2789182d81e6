// Training a DLRM whose server and worker share one device.
#ifndef STRATA_TOOLS_GPU_DLRM_BAR_H_
#define STRATA_TOOLS_GPU_DLRM_BAR_H_

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Lines for fp32, TF32 and bf16 with all rows in HBM and with a tenth of them, keys by Zipf's law,
// and for fp32 with a tenth and all keys alike: a step of a real job, from batches in memory (which
// are not routed) to committed rows. The server's shards and the worker run on all cores; values
// go by device memory where server and worker offer that, else in messages, with as many servers
// as keep a reply below the limit of a message. A line's note says which, and where a step's time
// went. The probe is probe.h's.
//
// All sizes are halved until the tables fit into nine tenths of the device's free memory and of the
// host's. Each case gets its share of nine tenths of what is left of context.part_seconds.
// kNotFound: there is no library of products. A case that fails (loss not a number, steps or rows
// missing, time) says nothing about the others, unless the device is lost. Waits.
absl::Status DlrmBar(const BarContext& context);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_BAR_H_
