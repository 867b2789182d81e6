#include "tests/faults/network/separate_networks.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kNames[] = "/run/netns";  // of `ip netns`
constexpr char kEnter[] = "/usr/bin/nsenter";

absl::Status Refused(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status Run(const std::string& command) {
  if (std::system(
          absl::StrCat("PATH=$PATH:/usr/sbin:/sbin ", command, " >/dev/null 2>&1").c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("cannot run `", command, "`"));
}

absl::Status RunAll(const std::vector<std::string>& commands) {
  for (const std::string& command : commands) {
    if (absl::Status s = Run(command); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void MustRun(const std::string& command) {
  if (const absl::Status s = Run(command); !s.ok())
    throw std::runtime_error(std::string(s.message()));
}

absl::Status Leave() {
  if (access(kEnter, X_OK) != 0) return Refused(kEnter);
  std::error_code error;
  fs::create_directories(kNames, error);
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return Refused("unshare of network and mounts");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Refused("private /");
  if (mount("tmpfs", kNames, "tmpfs", 0, nullptr) != 0) return Refused("tmpfs on /run/netns");
  std::ofstream("/proc/sys/net/ipv4/ip_forward") << "1\n" << std::flush;
  return RunAll({"ip link set lo up", "ip addr add 10.77.0.1/32 dev lo"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<SeparateNetworks>> SeparateNetworks::Make(
    const std::vector<std::string>& names) {
  if (absl::Status s = Leave(); !s.ok()) return s;
  auto networks = std::unique_ptr<SeparateNetworks>(new SeparateNetworks());
  for (const std::string& name : names) {
    const int n = networks->numbers_[name] = static_cast<int>(networks->numbers_.size()) + 1;
    const std::string here = absl::StrCat("to", n), in = absl::StrCat("ip -n ", name, " ");
    const absl::Status s = RunAll({
        "ip netns add " + name,
        absl::StrCat("ip link add ", here, " type veth peer name eth0 netns ", name),
        absl::StrCat("ip addr add 10.77.", n, ".1/24 dev ", here),
        absl::StrCat("ip link set ", here, " up"),
        absl::StrCat(in, "addr add ", networks->AddressOf(name), "/24 dev eth0"),
        in + "link set lo up",
        in + "link set eth0 up",
        absl::StrCat(in, "route add default via 10.77.", n, ".1"),
    });
    if (!s.ok()) return s;
  }
  return networks;
}

std::vector<std::string> SeparateNetworks::Launcher(const std::string& name) const {
  return {kEnter, absl::StrCat("--net=", kNames, "/", name), "--"};
}

std::string SeparateNetworks::AddressOf(const std::string& name) const {
  return absl::StrCat("10.77.", numbers_.at(name), ".2");
}

std::string SeparateNetworks::router_address() const { return "10.77.0.1"; }

void SeparateNetworks::Cut(const std::string& from, const std::string& to) {
  MustRun(absl::StrCat("ip rule add from ", AddressOf(from), " to ", AddressOf(to), " blackhole"));
}

void SeparateNetworks::Heal(const std::string& from, const std::string& to) {
  MustRun(absl::StrCat("ip rule del from ", AddressOf(from), " to ", AddressOf(to), " blackhole"));
}

void SeparateNetworks::Unplug(const std::string& name) {
  MustRun(absl::StrCat("ip link set to", numbers_.at(name), " down"));
}

void SeparateNetworks::Plug(const std::string& name) {
  MustRun(absl::StrCat("ip link set to", numbers_.at(name), " up"));
}

}  // namespace strata::testing
