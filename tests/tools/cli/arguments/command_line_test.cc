#include "tools/cli/arguments/command_line.h"

#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "tools/cli/base/options.h"

namespace strata {
namespace {

ParsedCommandLine Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "strata");
  return ParseCommandLine(static_cast<int>(words.size()), words.data());
}

TEST_CASE("commands are read with their options", "[command_line]") {
  const ParsedCommandLine train =
      Parse({"train", "-f", "job.yaml", "--set", "a=1", "--set", "b=[1, 2]", "--json", "--resume"});
  REQUIRE(train.command.has_value());
  const TrainOptions& t = std::get<TrainOptions>(*train.command);
  CHECK(t.source.file == "job.yaml");
  CHECK(t.source.overrides == std::vector<std::string>{"a=1", "b=[1, 2]"});
  CHECK(t.json);
  CHECK(t.resume);
  CHECK_FALSE(t.overwrite);

  const ParsedCommandLine up = Parse({"up", "--servers", "2", "--workers=3", "--dir", "d"});
  REQUIRE(up.command.has_value());
  CHECK(std::get<UpOptions>(*up.command).servers == 2);
  CHECK(std::get<UpOptions>(*up.command).workers == 3);
  CHECK(std::get<UpOptions>(*up.command).dir == "d");

  for (const bool trains : {false, true}) {
    std::vector<const char*> words = {trains ? "train" : "up", "--data-root", "a", "--data-root=b"};
    if (trains) words.insert(words.end(), {"-f", "j"});
    const ParsedCommandLine roots = Parse(words);
    REQUIRE(roots.command.has_value());
    CHECK((trains ? std::get<TrainOptions>(*roots.command).data_roots
                  : std::get<UpOptions>(*roots.command).data_roots) ==
          std::vector<std::string>{"a", "b"});
  }

  const ParsedCommandLine list = Parse({"checkpoint", "list", "--job", "7"});
  REQUIRE(list.command.has_value());
  CHECK(std::get<CheckpointListOptions>(*list.command).job == "7");

  const ParsedCommandLine renew = Parse({"certs", "renew", "server", "alpha", "--days", "30"});
  REQUIRE(renew.command.has_value());
  CHECK(std::get<CertsRenewOptions>(*renew.command).order.role == "server");
  CHECK(std::get<CertsRenewOptions>(*renew.command).order.name == "alpha");
  CHECK(std::get<CertsRenewOptions>(*renew.command).order.days == 30);
  CHECK(std::get<CertsRenewOptions>(*renew.command).order.dir == "./strata-certs");
  CHECK(std::get<CertsIssueOptions>(*Parse({"certs", "issue", "reader", "r"}).command).order.days ==
        90);

  const ParsedCommandLine delta = Parse({"delta", "removed", "--rows"});
  REQUIRE(delta.command.has_value());
  CHECK(std::get<DeltaCommandOptions>(*delta.command).path == "removed");
  CHECK(std::get<DeltaCommandOptions>(*delta.command).rows);
  CHECK_FALSE(std::get<DeltaCommandOptions>(*delta.command).json);

  const ParsedCommandLine generate = Parse({"generate", "criteo", "--rows", "10", "--vocab", "300",
                                            "--zipf", "1.2", "--seed", "9", "--output", "x"});
  REQUIRE(generate.command.has_value());
  CHECK(std::get<GenerateCriteoOptions>(*generate.command).rows == 10);
  CHECK(std::get<GenerateCriteoOptions>(*generate.command).zipf == 1.2);

  const ParsedCommandLine predict =
      Parse({"predict", "--checkpoint", "c", "one.tsv", "two.tsv", "-o", "out"});
  REQUIRE(predict.command.has_value());
  CHECK(std::get<PredictCommandOptions>(*predict.command).inputs.size() == 2);
}

TEST_CASE("an override with brackets stays one value", "[command_line]") {
  const ParsedCommandLine p = Parse(
      {"submit", "-f", "j", "--set", "spec.data.train=[a, b]", "--set=spec.model.hidden=[1,2]"});
  REQUIRE(p.command.has_value());
  CHECK(std::get<SubmitOptions>(*p.command).source.overrides ==
        std::vector<std::string>{"spec.data.train=[a, b]", "spec.model.hidden=[1,2]"});
}

TEST_CASE("help goes to stdout with exit code 0", "[command_line]") {
  for (const char* flag : {"--help", "-h", "--help-all"}) {
    const ParsedCommandLine help = Parse({flag});
    CHECK_FALSE(help.command.has_value());
    CHECK(help.exit_code == 0);
    CHECK(help.text.find("checkpoint") != std::string::npos);
    CHECK(help.text.find("supervise") == std::string::npos);
  }
  CHECK(Parse({"submit", "--help"}).text.find("--wait") != std::string::npos);
  CHECK(Parse({"--version"}).exit_code == 0);
}

TEST_CASE("wrong usage is exit code 2 and says what was meant", "[command_line]") {
  const auto problem = [](std::vector<const char*> words) {
    const ParsedCommandLine p = Parse(std::move(words));
    CHECK_FALSE(p.command.has_value());
    CHECK(p.exit_code == 2);
    return p.text;
  };
  CHECK(problem({}).find("train") != std::string::npos);
  CHECK(problem({"trian", "-f", "x"}).find("did you mean 'train'?") != std::string::npos);
  CHECK(problem({"submit", "-f", "x", "--wiat"}).find("did you mean '--wait'?") !=
        std::string::npos);
  CHECK(problem({"checkpoint", "verfy", "x"}).find("did you mean 'verify'?") != std::string::npos);
  CHECK(problem({"train"}).find("--file is required") != std::string::npos);
  CHECK(problem({"up", "--servers", "0"}).find("--servers") != std::string::npos);
  CHECK(problem({"up", "--servers", "two"}).find("--servers") != std::string::npos);
  CHECK(problem({"train", "-f", "x", "--resume", "--overwrite"}).find("excludes") !=
        std::string::npos);
  CHECK(problem({"cancel"}).find("job is required") != std::string::npos);
  CHECK(problem({"certs", "issue", "root", "alpha"}).find("role") != std::string::npos);
  CHECK(problem({"certs", "renew", "server", "alpha", "--days", "0"})
            .find("--days: '0' is not a number above 0") != std::string::npos);
  CHECK(problem({"certs", "isue"}).find("did you mean 'issue'?") != std::string::npos);
  CHECK(problem({"generate", "criteo", "--rows", "-5", "--output", "x"})
            .find("--rows: '-5' is not a number above 0") != std::string::npos);
  // What writes a folder writes to no standard output.
  for (const char* none : {"-", ""}) {
    const std::string says = "'" + std::string(none) + "' is no folder; name one";
    CHECK(problem({"export", "--checkpoint", "c", "-o", none}).find(says) != std::string::npos);
    CHECK(problem({"import", "-f", "j", "--keys", "k", "--rows", "r", "-o", none}).find(says) !=
          std::string::npos);
    CHECK(problem({"man", "-o", none}).find(says) != std::string::npos);
    CHECK(problem({"checkpoint", "quantise", "c", none}).find(says) != std::string::npos);
    CHECK(problem({"certs", "init", "--dir", none}).find(says) != std::string::npos);
  }
  // A number below 0 is no huge one.
  for (const char* option : {"--seed", "--first-row"}) {
    for (const char* kind : {"criteo", "movielens"}) {
      CHECK(problem({"generate", kind, option, "-1", "--output", "x"})
                .find(std::string(option) + ": '-1' is not a number from 0 on") !=
            std::string::npos);
    }
  }
  CHECK(problem({"predict", "--checkpoint", "c", "x", "--max-bad-lines", "-1"})
            .find("--max-bad-lines: '-1' is not a number from 0 on") != std::string::npos);
  CHECK(problem({"checkpoint", "diff", "a", "b", "--top", "-1"})
            .find("--top: '-1' is not a number from 0 on") != std::string::npos);
  CHECK(problem({"logs", "--lines", "-1"}).find("--lines: '-1' is not a number from 0 on") !=
        std::string::npos);
  CHECK(
      problem({"down", "--timeout", "soon"}).find("--timeout: 'soon' is not a number from 0 on") !=
      std::string::npos);
}

}  // namespace
}  // namespace strata
