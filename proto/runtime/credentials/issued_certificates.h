// Which certificates an authority has issued that have not expired, and the text that a file of
// them holds. Files of a certificate go with its second renewal, while it is still good: only this
// knows its number then, so that it can be revoked.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_ISSUED_CERTIFICATES_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_ISSUED_CERTIFICATES_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace strata {

// What has expired is kept for so long on lists: machines' clocks may be behind.
inline constexpr absl::Duration kKeptAfterExpiry = absl::Hours(24);

// A value; one thread at a time changes it.
class IssuedCertificates {
 public:
  struct Entry {
    std::string who;  // "reader/bob"
    absl::Time until;
  };

  // `serial` is as CertificateFacts has it, `who` without blanks.
  void Add(const std::string& serial, Entry entry);
  // Removes those that expired kKeptAfterExpiry ago.
  void DropExpired(absl::Time now);
  // By serial number.
  const std::map<std::string, Entry>& all() const { return all_; }

  // A line for each, and one with a checksum. Times are kept to the second.
  std::string Text() const;
  // DATA_LOSS: it is not a whole text of that kind; says which line.
  static absl::StatusOr<IssuedCertificates> Parse(absl::string_view text);

 private:
  std::map<std::string, Entry> all_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_ISSUED_CERTIFICATES_H_
