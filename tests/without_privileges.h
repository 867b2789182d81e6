// A test that runs as root, and must not be root for a moment.
#ifndef STRATA_TESTS_WITHOUT_PRIVILEGES_H_
#define STRATA_TESTS_WITHOUT_PRIVILEGES_H_

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace strata {

// As long as it lives the calling thread has no capabilities: files of mode 0 are closed to it,
// though they are its own. Without root it has none anyway.
class WithoutPrivileges {
 public:
  WithoutPrivileges() {
    REQUIRE(syscall(SYS_capget, &header_, before_) == 0);
    __user_cap_data_struct none[2] = {before_[0], before_[1]};
    none[0].effective = none[1].effective = 0;
    REQUIRE(syscall(SYS_capset, &header_, none) == 0);
  }
  ~WithoutPrivileges() { syscall(SYS_capset, &header_, before_); }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

}  // namespace strata

#endif  // STRATA_TESTS_WITHOUT_PRIVILEGES_H_
