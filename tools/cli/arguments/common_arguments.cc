#include "tools/cli/arguments/common_arguments.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

CLI::Validator NumberThat(const char* what, bool (*fits)(double)) {
  return CLI::Validator(
      [what, fits](std::string& text) {
        double number = 0;
        const bool good = absl::SimpleAtod(text, &number) && std::isfinite(number) && fits(number);
        return good ? std::string() : absl::StrCat("'", text, "' is not a number ", what);
      },
      "", what);
}

}  // namespace

CLI::Validator NotNegative() {
  return NumberThat("from 0 on", [](double x) { return x >= 0; });
}

CLI::Validator Positive() {
  return NumberThat("above 0", [](double x) { return x > 0; });
}

CLI::Validator NamedFolder() {
  return CLI::Validator(
      [](std::string& text) {
        const bool good = !text.empty() && text != "-";
        return good ? std::string() : absl::StrCat("'", text, "' is no folder; name one");
      },
      "", "folder");
}

void AddJson(CLI::App* command, bool& json) {
  command->add_flag("--json", json, "print JSON on stdout");
}

void AddSource(CLI::App* command, JobSource& source) {
  command->add_option("-f,--file", source.file, "job file, YAML or JSON ('-': standard input)")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--set", source.overrides,
                   "change a field: --set spec.training.batchSize=4096 (again for more; relative "
                   "paths are relative to the job file)")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddCredentials(CLI::App* command, std::string& certs, bool& insecure) {
  CLI::Option* given = command
                           ->add_option("--certs", certs,
                                        "folder of ca.crt, tls.crt and tls.key, as in "
                                        "strata-certs/operator/ann/current")
                           ->type_name("DIR")
                           ->check(NamedFolder());
  command->add_flag("--insecure", insecure, "without TLS: nobody is asked who he is")
      ->excludes(given);
}

void AddCluster(CLI::App* command, ClusterOptions& cluster) {
  CLI::Option* address = command
                             ->add_option("--scheduler", cluster.scheduler,
                                          "the cluster's scheduler (default: that of the context)")
                             ->type_name("HOST:PORT");
  command
      ->add_option("--context", cluster.context,
                   "one of `strata context list` (default: the current one)")
      ->type_name("NAME")
      ->excludes(address);
  AddCredentials(command, cluster.certs, cluster.insecure);
}

void AddFresh(CLI::App* command, bool& resume, bool& overwrite) {
  CLI::Option* r = command->add_flag(
      "--resume", resume, "go on from the newest checkpoint in spec.checkpoint.directory");
  command
      ->add_flag("--overwrite", overwrite,
                 "replace the checkpoints in spec.checkpoint.directory: they are removed just "
                 "before the job trains (nothing else there is), and spec.output.metrics begins "
                 "anew")
      ->excludes(r);
}

void AddDataRoots(CLI::App* command, std::vector<std::string>& roots) {
  command
      ->add_option("--data-root", roots,
                   "folder below which jobs may read and write, links resolved (again for more; "
                   "default: anywhere)")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddTimeout(CLI::App* command, double& seconds, const char* help) {
  command->add_option("--timeout", seconds, help)->type_name("SECONDS")->check(NotNegative());
}

}  // namespace strata
