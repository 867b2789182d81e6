#include "proto/runtime/transport/certificate_report.h"

#include "absl/status/status.h"
#include "proto/runtime/credentials/identity_files.h"

namespace strata {

void CertificateReport::AddTo(NodeReport& report) {
  if (source_ == nullptr) return;
  const auto mine = source_->Current();
  report.set_certificate_not_after_unix_ms(absl::ToUnixMillis(mine->certificate.facts.valid.until));
  const absl::Status problem = source_->problem();
  if (trouble_.empty()) since_ = source_->WallNow();
  trouble_ = std::string(problem.message());
  if (problem.ok()) return;
  Trouble trouble;
  trouble.set_reason("CertificateUnfit");
  trouble.set_message(trouble_);
  trouble.set_since_unix_ms(absl::ToUnixMillis(since_));
  for (ServerJobReport& job : *report.mutable_server_jobs()) *job.add_troubles() = trouble;
  for (WorkerJobReport& job : *report.mutable_worker_jobs()) *job.add_troubles() = trouble;
}

}  // namespace strata
