// Which certificates count no more before they expire, and the text that a file of them holds.
//
// The list is not signed. It lies in the authority's private folder, beside the key that would sign
// it, and reaches other processes over connections whose scheduler has proven who it is. Who could
// replace the list there could put an older list with a good signature in its place as well. What a
// checksum finds is damage: a list that lost its end is an error, and never a shorter list.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_REVOCATIONS_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_REVOCATIONS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace strata {

// A value; one thread at a time changes it.
class Revocations {
 public:
  struct Entry {
    std::string who;  // "reader/bob"
    absl::Time since;
    // It expires then, and counts no more by itself. InfiniteFuture(): not known.
    absl::Time until = absl::InfiniteFuture();
  };

  // Of a process that lost its list: it may let nobody in who could have been on it. `why`, not
  // empty, names what is damaged and what to do.
  static Revocations Unknown(std::string why);
  // Empty: the list is known.
  const std::string& unknown() const { return unknown_; }

  bool Contains(absl::string_view serial) const;
  // False: it is there already, and stays as it was. `serial` is as CertificateFacts has it, `who`
  // without blanks.
  bool Add(const std::string& serial, Entry entry);
  // Adds what the other one has: nothing ends a revocation but a certificate's expiry.
  void AddAll(const Revocations& other);
  // Removes those that expired kKeptAfterExpiry ago (issued_certificates.h).
  void DropExpired(absl::Time now);
  // By serial number.
  const std::map<std::string, Entry>& all() const { return all_; }

  // A line for each, and one with a checksum. Times are kept to the second.
  std::string Text() const;
  // DATA_LOSS: it is not a whole text of that kind; says which line. Texts of version 1, without
  // `until`, are read as well.
  static absl::StatusOr<Revocations> Parse(absl::string_view text);

 private:
  std::map<std::string, Entry> all_;
  std::string unknown_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_REVOCATIONS_H_
