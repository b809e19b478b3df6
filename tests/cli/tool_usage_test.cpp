// How the command is used wrongly, and what it says then; help and versions.
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/cli/served_tool.hpp"

namespace {

using wirecall::cli::Ended;
using wirecall::cli::run;
using wirecall::cli::status_in_shell;
using wirecall::cli::Tool;

TEST(ToolUsage, MistakesAreStatusTwoWithNothingOnStdout) {
  const std::vector<std::vector<std::string>> mistakes{
      {},
      {"nonsense"},
      {""},
      {"call", "\xFF"},
      {"call", "echo", "\xFF"},
      {"serve", "--demo", "--listen", "tcp://127.example.invalid:0"},
      {"call"},
      {"call", "subtract", "42", "subtrahend=23"},
      {"call", "echo", "value:number=1"},
      {"call", "echo", "--nonsense", "1"},
      {"call", "echo", "1", "--timeout", "soon"},
      {"call", "echo", "1", "--url", "nowhere"},
      {"call", "echo", "value=@/nonexistent/file"},
      {"serve", "--demo", "--port", "65536"},
      {"serve", "--demo", "--listen", "nowhere"},
      {"serve", "--demo", "--listen", "tcp://0.0.0.0:0"},
      {"serve", "--demo", "--", "more"},
      {"serve", "--demo", "--listen", "tcp://127.0.0.1:0", "--port", "0"},
      {"serve", "--demo", "--port", "0", "--limits-depth", "0"},
      {"serve", "--demo", "--port", "0", "--delimiter", ""},
      {"serve", "--demo", "--port", "0", "--delimiter", "\""},
      {"call", "echo", "1", "--call-timeout-ms", "0"},
      {"bench", "echo", "1", "-c", "0"},
      {"bench", "echo", "1", "-z", "soon"},
      {"bench", "echo", "1", "--warm-up", "soon"},
      {"bench", "echo", "1", "--rate", "0"},
      {"bench", "echo", "1", "--url", "nowhere"},
      {"bench", "\xFF"},
  };
  for (const auto& words : mistakes) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2) << testing::PrintToString(words) << ended.error;
    EXPECT_EQ(ended.output, "");
    EXPECT_NE(ended.error, "");
  }
}

TEST_F(Tool, StandardDescriptorsMayBeClosedOrFull) {
  EXPECT_EQ(status_in_shell("call 2>/dev/full"), 2);
  EXPECT_EQ(status_in_shell("call 2>&-"), 2);
  EXPECT_EQ(status_in_shell("call nix 2>&- --url " + url_), 1);
  EXPECT_EQ(status_in_shell("call subtract 5 3 2>&- >/dev/null --url " + url_), 0);
  EXPECT_EQ(status_in_shell("call subtract 5 3 2>/dev/null >&- --url " + url_), 1) << "nobody got the result";
  EXPECT_EQ(status_in_shell("call subtract 5 3 2>/dev/null >/dev/full --url " + url_), 1);
  EXPECT_EQ(status_in_shell("serve --demo --listen stdio: 2>/dev/null <&-"), 3) << "there is nobody to serve";
}

TEST(ToolUsage, WhatCannotBeWrittenHasNotBeenDone) {
  const std::vector<std::string> all{"serve --print-config", "man",          "completion bash", "completion zsh",
                                     "completion fish",      "help",         "help call",       "--help",
                                     "call --help",          "serve --help", "--version"};
  for (const std::string& words : all) {
    EXPECT_EQ(status_in_shell(words + " 2>/dev/null >/dev/full"), 1) << words;
    EXPECT_EQ(status_in_shell(words + " 2>&1 >/dev/full | grep -q 'cannot write to stdout: No space left'"), 0)
        << words;
  }
}

TEST(ToolUsage, ServeTellsHowAPythonProgramIsServed) {
  const std::string help = run({"serve", "--help"}).output;
  for (const std::string_view part : {"Usage: wirecall serve [FILE.py[:NAME] [--workers N]] [OPTIONS]",
                                      "  --workers N ", "wirecall serve FILE.py --help tells"})
    EXPECT_NE(help.find(part), std::string::npos) << part;
  EXPECT_NE(run({"man"}).output.find("serve [FILE.py[:NAME] [\\-\\-workers N]]"), std::string::npos);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"serve", "--workers", "2"}, {"serve", "--workers=2", "--demo", "--port", "0"}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.error, "wirecall: --workers is for a Python program: wirecall serve FILE.py --workers 2\n");
    EXPECT_EQ(ended.status, 2);
  }
  EXPECT_EQ(run({"serve", "--reload"}).error,
            "wirecall: --reload is for a Python program: wirecall serve FILE.py --reload\n");
}

TEST(ToolUsage, ANumberThatIsNoneIsRefusedInTheWordsOfTheOptions) {
  const auto refusal = [](const std::vector<std::string>& words) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2);
    return ended.error.substr(0, ended.error.find(';'));
  };
  const std::string kRange = ": give a number from 1 to 4294967295";
  EXPECT_EQ(refusal({"reply", "foo", "x", "--concurrency", "0x"}),
            "wirecall: --concurrency: concurrency is \"0x\"" + kRange);
  EXPECT_EQ(refusal({"reply", "foo", "x", "--concurrency", "0"}), "wirecall: --concurrency: concurrency is 0" + kRange);
  EXPECT_EQ(refusal({"reply", "foo", "x", "--queue", "-1"}),
            "wirecall: --queue: queue is \"-1\": give a number from 0 to 4294967295");
  for (const std::string command : {"reply", "sub", "tap"}) {
    EXPECT_EQ(refusal({command, "foo", "--count", "4294967296"}), "wirecall: --count: count is 4294967296" + kRange);
  }
  EXPECT_EQ(refusal({"serve", "--demo=x"}), "wirecall: --demo: demo is \"x\": give true or false");
  EXPECT_EQ(refusal({"bench", "foo", "-c", "x"}),
            "wirecall: --connections: connections is \"x\": give a number from 1 to 100000");
  EXPECT_EQ(refusal({"bench", "foo", "-p", "0"}),
            "wirecall: --pipeline: pipeline is 0: give a number from 1 to 100000");
  EXPECT_EQ(refusal({"bench", "foo", "--rate", "fast"}),
            "wirecall: --rate: rate is \"fast\": give a number from 0.001 to 1000000000");
}

TEST(ToolUsage, WhatItComplainsOfSteersNoTerminal) {
  EXPECT_EQ(run({"call", "x", "\xff\x1b[31m"}).error,
            "wirecall: \\xff\\x1b[31m: is not valid UTF-8; send it as bytes: name:bytes=…\n");
}

TEST(ToolUsage, AnUnknownCommandIsNamedWithTheNearest) {
  EXPECT_TRUE(run({"foo"}).error.starts_with("wirecall: there is no command foo. Commands are serve, call, "));
  EXPECT_TRUE(run({"serv"}).error.starts_with("wirecall: there is no command serv; did you mean serve? Commands are "));
  EXPECT_EQ(run({"cal", "echo"}).status, 2);
}

TEST(ToolUsage, AnUnknownOptionIsNamedWithTheNearest) {
  EXPECT_EQ(
      run({"serve", "--demo", "--tread-count", "2"}).error,
      "wirecall: there is no option --tread-count; did you mean --thread-count? wirecall serve --help tells more\n");
  EXPECT_EQ(run({"call", "echo", "1", "--tmeout=3s"}).error,
            "wirecall: there is no option --tmeout; did you mean --timeout? wirecall call --help tells more\n");
  EXPECT_EQ(run({"call", "echo", "1", "--port", "8600"}).error,
            "wirecall: there is no option --port; say where the server is by --url HOST:PORT; wirecall call --help "
            "tells more\n");
  EXPECT_EQ(run({"--verison"}).error,
            "wirecall: there is no option --verison; did you mean --version? wirecall --help tells more\n");
  EXPECT_EQ(run({"bench", "echo", "-x"}).error, "wirecall: there is no option -x; wirecall bench --help tells more\n");
  EXPECT_EQ(run({"serve", "nosuch"}).error,
            "wirecall: there is no module nosuch: name one, or a file that ends in .py\n");
  EXPECT_EQ(run({"serve", "--demo", "x"}).error,
            "wirecall: serve takes no argument x; wirecall serve --help tells more\n");
  EXPECT_EQ(run({"serve", "--demo", "--", "x"}).status, 2);
}

TEST(ToolUsage, ANameThatBeginsLikeALoopbackAddressIsNotTakenForOne) {
  EXPECT_NE(run({"serve", "--demo", "--listen", "tcp://127.example.invalid:0"}).error.find("--insecure"),
            std::string::npos);
}

TEST(ToolUsage, HelpAndVersionAreResults) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--help"},
                                                                                     {"call", "--help"},
                                                                                     {"notify", "--help"},
                                                                                     {"serve", "--help"},
                                                                                     {"bench", "--help"},
                                                                                     {"--version"}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 0);
    EXPECT_NE(ended.output, "");
    EXPECT_EQ(ended.error, "");
    if (words.back() == "--help") {
      EXPECT_NE(ended.output.find(", 130 "), std::string::npos) << words.front();
    }
  }
}

}  // namespace
