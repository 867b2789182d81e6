#include "proto/runtime/base/failpoints.h"

#include <signal.h>
#include <unistd.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutex.h"

namespace strata {
namespace {

struct Armed {
  FailpointPlan plan;
  uint64_t seen = 0;
};

struct Registry {
  Mutex mu;
  std::map<std::string, Armed, std::less<>> points ABSL_GUARDED_BY(mu);
};

Registry& Points() {
  static Registry& registry = *new Registry;
  return registry;
}

std::map<std::string, Armed, std::less<>>::iterator Find(Registry& registry, absl::string_view name)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mu) {
  return registry.points.find(std::string(name));
}

absl::StatusOr<absl::StatusCode> CodeOf(absl::string_view name) {
  for (int code = 1; code <= 16; ++code) {
    const auto c = static_cast<absl::StatusCode>(code);
    if (absl::StatusCodeToString(c) == name) return c;
  }
  return absl::InvalidArgumentError(absl::StrCat("failpoint: no status code \"", name, "\""));
}

// Takes "prefix(inside)" apart.
bool Call(absl::string_view text, absl::string_view prefix, absl::string_view& inside) {
  if (!absl::ConsumePrefix(&text, prefix) || !absl::ConsumePrefix(&text, "(") ||
      !absl::ConsumeSuffix(&text, ")")) {
    return false;
  }
  inside = text;
  return true;
}

absl::StatusOr<std::function<absl::Status()>> ParseAction(absl::string_view name,
                                                          absl::string_view text) {
  absl::string_view inside;
  if (text == "kill") return Kill();
  if (text == "stop") return Stop();
  int code = 0;
  if (Call(text, "exit", inside) && absl::SimpleAtoi(inside, &code) && code >= 0 && code < 256) {
    return Exit(code);
  }
  if (Call(text, "error", inside)) {
    const absl::StatusOr<absl::StatusCode> status = CodeOf(inside);
    if (!status.ok()) return status.status();
    return FailWith(absl::Status(*status, absl::StrCat("failpoint ", name)));
  }
  return absl::InvalidArgumentError(absl::StrCat("failpoint ", name, ": action \"", text,
                                                 "\" is none of error(CODE), kill, stop, ",
                                                 "exit(0..255)"));
}

absl::StatusOr<std::pair<std::string, FailpointPlan>> ParseOne(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const absl::string_view name = sides.first;
  absl::string_view action = sides.second;
  FailpointPlan plan;
  const auto number = [&action](char mark, uint64_t& out) {
    const size_t at = action.rfind(mark);
    if (at == absl::string_view::npos) return true;
    if (!absl::SimpleAtoi(action.substr(at + 1), &out) || out == 0) return false;
    action = action.substr(0, at);
    return true;
  };
  if (name.empty() || !number('/', plan.every) || !number('*', plan.hits) ||
      !number('@', plan.first_hit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("failpoint \"", text, "\" is not name=action[@first_hit][*hits][/every]"));
  }
  auto act = ParseAction(name, action);
  if (!act.ok()) return act.status();
  plan.act = *std::move(act);
  return std::make_pair(std::string(name), std::move(plan));
}

}  // namespace

namespace failpoints_internal {

std::atomic<int> armed{0};

absl::Status Hit(absl::string_view name) {
  std::function<absl::Status()> act;
  {
    Registry& registry = Points();
    MutexLock lock(&registry.mu);
    const auto it = Find(registry, name);
    if (it == registry.points.end()) return absl::OkStatus();
    Armed& point = it->second;
    const uint64_t hit = ++point.seen;
    const FailpointPlan& plan = point.plan;
    if (hit < plan.first_hit || (hit - plan.first_hit) % plan.every != 0 ||
        (hit - plan.first_hit) / plan.every >= plan.hits) {
      return absl::OkStatus();
    }
    act = point.plan.act;
  }
  return act ? act() : absl::OkStatus();
}

}  // namespace failpoints_internal

std::function<absl::Status()> FailWith(absl::Status status) {
  return [status = std::move(status)] { return status; };
}

std::function<absl::Status()> Kill() {
  return [] {
    kill(getpid(), SIGKILL);
    for (;;) pause();  // the signal may reach another thread first
    return absl::OkStatus();
  };
}

std::function<absl::Status()> Stop() {
  return [] {
    raise(SIGSTOP);  // to this thread, so that it does not run on until another one has the signal
    return absl::OkStatus();
  };
}

std::function<absl::Status()> Exit(int code) {
  return [code] {
    _exit(code);
    return absl::OkStatus();
  };
}

void ArmFailpoint(absl::string_view name, FailpointPlan plan) {
  Registry& registry = Points();
  MutexLock lock(&registry.mu);
  registry.points.insert_or_assign(std::string(name), Armed{std::move(plan), 0});
  failpoints_internal::armed.store(static_cast<int>(registry.points.size()));
}

void DisarmFailpoint(absl::string_view name) {
  Registry& registry = Points();
  MutexLock lock(&registry.mu);
  const auto it = Find(registry, name);
  if (it != registry.points.end()) registry.points.erase(it);
  failpoints_internal::armed.store(static_cast<int>(registry.points.size()));
}

void DisarmAllFailpoints() {
  Registry& registry = Points();
  MutexLock lock(&registry.mu);
  registry.points.clear();
  failpoints_internal::armed.store(0);
}

uint64_t FailpointHits(absl::string_view name) {
  Registry& registry = Points();
  MutexLock lock(&registry.mu);
  const auto it = Find(registry, name);
  return it == registry.points.end() ? 0 : it->second.seen;
}

absl::Status ArmFailpointsFromText(absl::string_view text) {
  std::vector<std::pair<std::string, FailpointPlan>> plans;
  for (const absl::string_view part : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    auto one = ParseOne(part);
    if (!one.ok()) return one.status();
    plans.push_back(*std::move(one));
  }
  for (auto& [name, plan] : plans) ArmFailpoint(name, std::move(plan));
  return absl::OkStatus();
}

}  // namespace strata
