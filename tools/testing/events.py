"""Reads Bazel's build events (one JSON object a line), while Bazel writes them."""

import dataclasses
import json
import re
import urllib.parse

# "x.cc:1:2: warning: ", "cc1plus: warning: ", "ld: x.o: warning: ", "x.cu(3): warning #1-D: ".
WARNING = re.compile(r"^\S+(?::| \S+:) warning: |^\S+\(\d+\): warning(?: #\S+)?: ")
# Of each program that Clang links with its AddressSanitizer by gold: Clang's list of symbols to
# export has one that is local. No flag leaves it out, and nothing is lost.
FALSE_WARNING = re.compile(
    r"^\S*ld\.gold: warning: Cannot export local symbol '__asan_extra_spill_area'$")
PASSED = ("PASSED", "FLAKY")


@dataclasses.dataclass
class Test:
    """What Bazel told of a test. NO_STATUS: nothing."""
    status: str = "NO_STATUS"
    xml: list = dataclasses.field(default_factory=list)
    log: list = dataclasses.field(default_factory=list)
    seconds: float = 0
    cached: bool = False     # an earlier run's result


class Events:
    """Everything that one call of Bazel told so far. One thread."""

    def __init__(self):
        self.tests = {}      # by label
        self.shown = {"stdout": "", "stderr": ""}  # pieces, which may end within a line
        self._rest = ""

    def feed(self, text):
        """Takes what was appended to the file; its last line may be incomplete."""
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for line in lines:
            if line.strip():
                self._take(json.loads(line))

    def _take(self, event):
        identity = event.get("id", {})
        for stream, piece in event.get("progress", {}).items():
            if stream in self.shown:
                self.shown[stream] += piece
        if "testResult" in identity and "testResult" in event:
            self._take_result(identity["testResult"]["label"], event["testResult"])
        elif "testSummary" in identity and "testSummary" in event:
            test = self.tests.setdefault(identity["testSummary"]["label"], Test())
            test.status = event["testSummary"]["overallStatus"]

    def _take_result(self, label, result):
        test = self.tests.setdefault(label, Test())
        test.seconds += int(result.get("testAttemptDurationMillis", 0)) / 1000
        test.cached = bool(result.get("cachedLocally") or
                           result.get("executionInfo", {}).get("cachedRemotely"))
        for output in result.get("testActionOutput", []):
            uri = urllib.parse.urlparse(output.get("uri", ""))
            kind = {"test.xml": test.xml, "test.log": test.log}.get(output["name"])
            if kind is not None and uri.scheme == "file":
                kind.append(urllib.parse.unquote(uri.path))
        # A summary follows the last attempt; until it came, the attempt's own status counts.
        if test.status == "NO_STATUS" and result.get("status") not in (None, "NO_STATUS"):
            test.status = result["status"]

    def warnings(self):
        """What compilers and linkers warned of, each line once, sorted."""
        return sorted({line for text in self.shown.values() for line in text.splitlines()
                       if WARNING.match(line) and not FALSE_WARNING.match(line)})

    def done(self):
        """Labels that have a result."""
        return {label for label, test in self.tests.items() if test.status != "NO_STATUS"}

    def failed(self):
        return {label for label in self.done() if self.tests[label].status not in PASSED}


def read_appended(path, offset):
    """(text appended to a file behind a byte offset, the new offset). Cuts no character."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return "", offset
    data = data[:data.rfind(b"\n") + 1]
    return data.decode("utf-8", errors="replace"), offset + len(data)
