#include "tools/cli/describe/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/version.h"

namespace strata {
namespace {

std::string Heading(absl::string_view page, int section) {
  return absl::StrCat(".\\\" Made by: strata man\n.TH ", absl::AsciiStrToUpper(TroffEscape(page)),
                      " ", section, " \"\" \"strata ", kVersion,
                      "\" \"Strata manual\"\n.SH NAME\n");
}

std::string PageOf(const CommandHelp& command) {
  return absl::StrReplaceAll(command.path, {{" ", "-"}});
}

// "first sentence": NAME sections begin in lower case and have no full stop.
std::string Summary(std::string text) {
  text = text.substr(0, text.find('\n'));
  const bool word = text.size() > 1 && absl::ascii_islower(text[1]);
  if (word) text[0] = absl::ascii_tolower(text[0]);
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

// ".TP" with the names in bold and the value in italics.
std::string Argument(const ArgumentHelp& argument) {
  std::vector<std::string> names;
  for (const std::string& name : argument.names) {
    names.push_back(absl::StrCat("\\fB", TroffEscape(name), "\\fR"));
  }
  std::string head = absl::StrJoin(names, ", ");
  if (!argument.value.empty()) {
    absl::StrAppend(&head, head.empty() ? "" : " ", "\\fI", TroffEscape(argument.value), "\\fR",
                    argument.repeated ? " ..." : "");
  }
  std::string text = argument.text;
  if (!argument.choices.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "one of ",
                    absl::StrJoin(argument.choices, ", "));
  }
  if (!argument.standard.empty()) absl::StrAppend(&text, " (default ", argument.standard, ")");
  if (argument.required) absl::StrAppend(&text, " (required)");
  return absl::StrCat(".TP\n", head, "\n", TroffEscape(text), "\n");
}

std::string Synopsis(const CommandHelp& command) {
  std::string text = absl::StrCat(".SH SYNOPSIS\n.B ", TroffEscape(command.path), "\n");
  for (const ArgumentHelp& option : command.options) {
    if (!option.required) continue;
    absl::StrAppend(&text, "\\fB", TroffEscape(option.names.back()), "\\fR \\fI",
                    TroffEscape(option.value), "\\fR\n");
  }
  text += "[\\fIoptions\\fR]\n";
  if (!command.commands.empty()) text += "\\fIcommand\\fR ...\n";
  for (const ArgumentHelp& argument : command.positionals) {
    const std::string value =
        absl::StrCat("\\fI", TroffEscape(argument.value), "\\fR", argument.repeated ? " ..." : "");
    absl::StrAppend(&text, argument.required ? value : absl::StrCat("[", value, "]"), "\n");
  }
  return text;
}

std::string ExitStatus() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitMeaning& exit : kExitMeanings) {
    absl::StrAppend(&text, ".TP\n.B ", exit.code, "\n", exit.meaning, "\n");
  }
  return text;
}

// What holds for every command.
std::string Surroundings() {
  return ".SH FILES\n"
         ".TP\n.I ~/.config/strata/contexts.yaml\n"
         "The clusters that \\fBstrata context\\fR and \\fBstrata up\\fR have given names to.\n"
         ".TP\n.I ./strata\\-run\n"
         "Where \\fBstrata up\\fR keeps logs, metadata and shards, unless \\fB\\-\\-dir\\fR says "
         "otherwise.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B NO_COLOR\nWhen set and not empty, nothing is coloured.\n"
         ".TP\n.B XDG_CONFIG_HOME\nThe folder used in place of \\fI~/.config\\fR.\n";
}

std::string SeeAlso(const CommandHelp& root, const CommandHelp& command) {
  std::vector<std::string> pages;
  const auto add = [&](const std::string& name, int section) {
    pages.push_back(absl::StrCat(".BR ", TroffEscape(name), " (", section, ")"));
  };
  if (command.path != root.path) add("strata", 1);
  for (const CommandHelp& below : command.commands) add(PageOf(below), 1);
  add("strata-job", 5);
  if (command.path == root.path) {
    for (const char* daemon : {"strata-scheduler", "strata-server", "strata-worker"})
      add(daemon, 8);
  }
  return absl::StrCat(".SH SEE ALSO\n", absl::StrJoin(pages, " ,\n"), "\n");
}

std::string CommandPage(const CommandHelp& root, const CommandHelp& command) {
  std::string page =
      absl::StrCat(Heading(PageOf(command), 1), TroffEscape(PageOf(command)), " \\- ",
                   TroffEscape(Summary(command.text)), "\n", Synopsis(command), ".SH DESCRIPTION\n",
                   TroffEscape(command.text), ".\n");
  if (!command.commands.empty()) page += ".SH COMMANDS\n";
  for (const CommandHelp& below : command.commands) {
    absl::StrAppend(&page, ".TP\n.B ", TroffEscape(below.name()), "\n", TroffEscape(below.text),
                    ".\nSee\n.BR ", TroffEscape(PageOf(below)), " (1).\n");
  }
  if (!command.positionals.empty()) page += ".SH ARGUMENTS\n";
  for (const ArgumentHelp& argument : command.positionals) page += Argument(argument);
  if (!command.options.empty()) page += ".SH OPTIONS\n";
  for (const ArgumentHelp& option : command.options) page += Argument(option);
  return absl::StrCat(page, ExitStatus(), "Data go to stdout, messages to stderr.\n",
                      Surroundings(), SeeAlso(root, command));
}

void AddCommandPages(const CommandHelp& root, const CommandHelp& command,
                     std::map<std::string, std::string>& pages) {
  pages[PageOf(command) + ".1"] = CommandPage(root, command);
  for (const CommandHelp& below : command.commands) AddCommandPages(root, below, pages);
}

// Objects get headings of their own, fields an entry each.
void AddFieldEntries(const JobFileField& object, std::string& page) {
  for (const JobFileField& field : object.fields) {
    absl::StrAppend(&page, ".TP\n.B ", TroffEscape(field.path), "\n\\fI", TroffEscape(field.type),
                    "\\fR.\n");
    for (absl::string_view paragraph : absl::StrSplit(field.text, "\n\n")) {
      absl::StrAppend(&page, TroffEscape(paragraph), "\n");
    }
  }
  for (const JobFileField& field : object.fields) {
    if (field.fields.empty()) continue;
    absl::StrAppend(&page, ".SS ", TroffEscape(field.path), "\n");
    AddFieldEntries(field, page);
  }
}

std::string JobPage(const JobFileField& job) {
  std::string page = absl::StrCat(
      Heading("strata-job", 5), "strata\\-job \\- what a job file of Strata may say\n",
      ".SH DESCRIPTION\n", TroffEscape(job.text), "\n.PP\n",
      "\\fBstrata validate \\-f\\fR \\fIFILE\\fR prints a job file with every default; "
      "\\fBstrata explain\\fR tells what stands here.\n.SH FIELDS\n");
  AddFieldEntries(job, page);
  return page +
         ".SH SEE ALSO\n.BR strata (1),\n.BR strata\\-explain (1),\n"
         ".BR strata\\-validate (1)\n";
}

}  // namespace

std::string TroffEscape(absl::string_view text) {
  std::string escaped;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '~') {
      escaped += "\\(ti";
    } else if (c == '^') {
      escaped += "\\(ha";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '`') {
      escaped += "\\(ga";
    } else {
      escaped += c;
    }
    line_start = c == '\n';
  }
  return escaped;
}

std::map<std::string, std::string> ManualPages(const CommandHelp& root, const JobFileField& job) {
  std::map<std::string, std::string> pages;
  AddCommandPages(root, root, pages);
  pages["strata-job.5"] = JobPage(job);
  return pages;
}

std::string DaemonPage(absl::string_view name, absl::string_view summary, absl::string_view help) {
  return absl::StrCat(Heading(name, 8), TroffEscape(name), " \\- ", TroffEscape(summary),
                      "\n.SH DESCRIPTION\nIts \\fB\\-\\-help\\fR:\n.PP\n.nf\n", TroffEscape(help),
                      ".fi\n.SH SEE ALSO\n.BR strata (1)\n");
}

}  // namespace strata
