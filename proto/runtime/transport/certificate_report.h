// What a node reports of its certificate.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_CERTIFICATE_REPORT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_CERTIFICATE_REPORT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/strata/control.pb.h"

namespace strata {

// One thread at a time.
class CertificateReport {
 public:
  // Null: there is none, and nothing is reported.
  explicit CertificateReport(std::shared_ptr<CredentialSource> source)
      : source_(std::move(source)) {}

  // When what is shown now expires; and, where what lies in its place is no good, that as a trouble
  // (CertificateUnfit) of each job that the report has.
  void AddTo(NodeReport& report);

 private:
  const std::shared_ptr<CredentialSource> source_;
  std::string trouble_;  // empty: none
  absl::Time since_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_CERTIFICATE_REPORT_H_
