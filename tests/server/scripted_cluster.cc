#include "tests/server/scripted_cluster.h"

#include "proto/core/ids.h"
#include "proto/wire/message_codec.h"
#include "tests/server/one_shard_job.h"

namespace strata::server {

bool HasState(const NodeReport& r, ServerJobReport::State state) {
  return r.server_jobs_size() == 1 && r.server_jobs(0).state() == state;
}

absl::Status OpenSession(DataTransport& transport, const std::string& address) {
  const wire::Header header = {JobId(1), SessionId(5), Generation(1), MapEpoch(3)};
  return transport.Connect({address, "s"}, Caller::Nobody())
      ->CallAndWait(DataMethod::kOpenSession,
                    wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, kIdentity)),
                    absl::Seconds(30))
      .status();
}

}  // namespace strata::server
