#include "tools/bench/wire/transport_limit.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "tools/bench/cluster/child_process.h"
#include "tools/bench/wire/load.h"

namespace strata::bench {

absl::StatusOr<TransportLimit> MeasureTransport(const BenchOptions& o, size_t request,
                                                size_t reply) {
  const std::string file = absl::StrCat(o.directory, "/echo-address");
  std::filesystem::remove(file);
  auto server = ChildProcess::Start({std::filesystem::read_symlink("/proc/self/exe").string(),
                                     "--echo", file, "--echo-reply", absl::StrCat(reply)});
  if (!server.ok()) return server.status();
  auto address = ReadAddressFile(file);
  if (!address.ok()) return address.status();
  auto transport = MakeGrpcTransport({});
  auto channel = transport->Connect({*address, "s"}, Caller::Nobody());
  BufferBuilder builder(request);
  std::fill(builder.span().begin(), builder.span().end(), uint8_t{7});
  const Buffer message = builder.Finish();
  Pump pump(
      channel.get(), DataMethod::kPull, [&](uint64_t) { return message; },
      [](uint64_t, const Buffer&) { return absl::OkStatus(); });
  if (auto warm = pump.Run(0.2, 4); !warm.ok()) return warm.status();
  const double before = OwnCpuSeconds();
  const absl::Time from = absl::Now();
  auto rate = pump.Run(o.seconds / 2, 1);
  if (!rate.ok()) return rate.status();
  const double calls = *rate * absl::ToDoubleSeconds(absl::Now() - from);
  return TransportLimit{*rate, (OwnCpuSeconds() - before) / calls};
}

}  // namespace strata::bench
