// What shells complete, and the manual page: made of the parser's flags, so every command and flag is in them.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "cli/command_texts.hpp"
#include "cli/commands/commands.hpp"
#include "tests/cli/process.hpp"
#include "tests/server/folder.hpp"

namespace wirecall::cli {
namespace {

std::string said_by(const std::string& shell_words) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe{popen(shell_words.c_str(), "r"), &pclose};
  std::string text;
  std::array<char, 4096> block;
  for (std::size_t bytes = 0; (bytes = fread(block.data(), 1, block.size(), pipe.get())) != 0;)
    text.append(block.data(), bytes);
  return text;
}

/// What bash offers for the last of the words.
std::set<std::string> offered(const std::string& script, const std::vector<std::string>& words) {
  std::string line = "bash --norc -c 'source \"$0\"; COMP_WORDS=(";
  for (const std::string& word : words) line += "\"" + word + "\" ";
  line += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _wirecall; echo \"${COMPREPLY[@]}\"' " + script;
  std::istringstream text{said_by(line)};
  std::set<std::string> result;
  for (std::string word; text >> word;) result.insert(word);
  return result;
}

class Completion : public testing::Test {
 protected:
  std::string script_of(const std::string& shell) const {
    const std::string path = folder_.path + "/" + shell;
    const Ended ended = run({"completion", shell});
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.error, "");
    std::ofstream{path} << ended.output;
    return path;
  }
  std::string text_of(const std::string& shell) const { return run({"completion", shell}).output; }

  net::Folder folder_;
};

TEST_F(Completion, of_bash_knows_commands_flags_and_the_words_behind_them) {
  if (std::system("bash --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash";
  const std::string script = script_of("bash");
  EXPECT_EQ(offered(script, {"wirecall", "comp"}), (std::set<std::string>{"completion"}));
  EXPECT_EQ(offered(script, {"wirecall", "ca"}), (std::set<std::string>{"call"}));
  EXPECT_EQ(offered(script, {"wirecall", "call", "--time"}), (std::set<std::string>{"--timeout"}));
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--princ"}), (std::set<std::string>{"--principals-file"}));
  EXPECT_TRUE(offered(script, {"wirecall", "serve", "--config", ""}).empty()) << "bash offers files";
  EXPECT_EQ(offered(script, {"wirecall", "completion", ""}).count("fish"), 1U);
  const std::set<std::string> context = offered(script, {"wirecall", "context", ""});
  for (const char* word : {"ls", "add", "use", "rm", "--json"}) EXPECT_EQ(context.count(word), 1U) << word;
  EXPECT_EQ(offered(script, {"wirecall", "help", "tap"}), (std::set<std::string>{"tap"}));
}

TEST_F(Completion, of_bash_knows_the_words_that_a_flag_takes) {
  if (std::system("bash --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash";
  using Words = std::set<std::string>;
  const std::string script = script_of("bash");
  const Words engines{"auto", "epoll", "uring"};
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--engine", ""}), engines);
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--engine", "="}), engines) << "--engine=";
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--engine", "=", "u"}), Words{"uring"});
  const Words encodings{"json", "msgpack", "cbor", "protobuf"};
  EXPECT_EQ(offered(script, {"wirecall", "notify", "--encoding", ""}), encodings);
  EXPECT_EQ(offered(script, {"wirecall", "call", "--encoding", "pa"}), Words{"packed"});
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--log-format", "h"}), Words{"human"});
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--log-level", "w"}), Words{"warning"});
  EXPECT_EQ(offered(script, {"wirecall", "reply", "a", "b", "--policy", "r"}), (Words{"round_robin", "random"}));
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--log-calls", "t"}), Words{"true"});
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--log-calls", "--dem"}), Words{"--demo"}) << "it may stand alone";
  EXPECT_TRUE(offered(script, {"wirecall", "call", "--engine", ""}).count("epoll") == 0) << "it has no such flag";
}

TEST_F(Completion, of_bash_knows_the_programs_that_serve_takes) {
  if (std::system("bash --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash";
  const std::string script = script_of("bash");
  for (const char* name : {"/calc.py", "/calc.txt"}) std::ofstream{folder_.path + name};
  EXPECT_EQ(offered(script, {"wirecall", "serve", folder_.path + "/ca"}),
            (std::set<std::string>{folder_.path + "/calc.py"}));
  EXPECT_EQ(offered(script, {"wirecall", "serve", "--work"}), (std::set<std::string>{"--workers"}));
  EXPECT_NE(text_of("zsh").find("'*: :_files -g \"*.py\"'"), std::string::npos);
  EXPECT_NE(text_of("fish").find("(__fish_complete_suffix .py)"), std::string::npos);
}

TEST_F(Completion, of_zsh_and_fish_knows_the_words_that_a_flag_takes) {
  const std::string zsh = text_of("zsh");
  for (const std::string_view part :
       {":WORD:(auto epoll uring)'", ":WORD:(json msgpack cbor protobuf)'", "::true|false:(true false)'"})
    EXPECT_NE(zsh.find(part), std::string::npos) << part;
  const std::string fish = text_of("fish");
  for (const std::string_view part :
       {" -l engine -r -f -a 'auto epoll uring' ", " -l encoding -r -f -a 'json msgpack cbor protobuf' ",
        " -l log-calls -f -a 'true false' "})
    EXPECT_NE(fish.find(part), std::string::npos) << part;
}

TEST_F(Completion, of_every_shell_names_each_flag_that_the_help_names) {
  std::istringstream help{run({"help", "bench"}).output};
  std::set<std::string> flags;
  for (std::string line; std::getline(help, line);) {
    const std::size_t at = line.find("--");
    if (at != std::string::npos && line.starts_with("  -"))
      flags.insert(line.substr(at + 2, line.find_first_of(" ,", at) - at - 2));
  }
  EXPECT_GT(flags.size(), 8U);
  const std::string manual = run({"man"}).output;
  for (const std::string& flag : flags) {
    EXPECT_NE(text_of("bash").find("--" + flag), std::string::npos) << flag;
    EXPECT_NE(text_of("zsh").find("*--" + flag + "["), std::string::npos) << flag;
    EXPECT_NE(text_of("fish").find(" -l " + flag + " "), std::string::npos) << flag;
  }
}

TEST_F(Completion, scripts_are_such_as_their_shells_can_read) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (std::system(("command -v " + shell + " > /dev/null 2>&1").c_str()) != 0) continue;
    EXPECT_EQ(std::system((shell + " -n " + script_of(shell)).c_str()), 0) << shell;
  }
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string text = text_of(shell);
    EXPECT_EQ(std::ranges::count(text, '\'') % 2, 0) << shell;
  }
}

TEST_F(Completion, is_asked_for_by_the_shell_s_name) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.output, "");
  }
  EXPECT_EQ(run({"completion"}).error, "wirecall: for which shell? Say bash, zsh or fish\n");
}

TEST_F(Completion, no_word_is_offered_that_is_only_the_name_of_a_value) {
  CLI::App app{"", "wirecall"};
  CLI::App& one = *app.add_subcommand("one", "Does it");
  one.add_option("--place,-p", "Where")->type_name("URI");
  one.add_flag("--quietly");
  one.add_option("--way", "Which way: one of up, to:PLACE, down (default: up)")->type_name("WORD");
  const std::vector<CommandText> texts = command_texts(app);
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts[0].choices, std::vector<std::string>{"one"});
  EXPECT_TRUE(texts[1].choices.empty());
  ASSERT_EQ(texts[1].flags.size(), 4U) << "help, place, quietly and way";
  EXPECT_EQ(texts[1].flags[1].names, (std::vector<std::string>{"-p", "--place"}));
  EXPECT_EQ(texts[1].flags[1].value, "URI");
  EXPECT_TRUE(texts[1].flags[1].values.empty());
  EXPECT_EQ(texts[1].flags[2].value, "");
  EXPECT_EQ(texts[1].flags[3].values, (std::vector<std::string>{"up", "down"}));
}

TEST(Manual, is_read_by_man_without_a_warning) {
  if (std::system("man --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no man";
  const net::Folder folder;
  const std::string path = folder.path + "/wirecall.1";
  std::ofstream{path} << run({"man"}).output;
  EXPECT_EQ(said_by("LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l " + path + " 2>&1 >/dev/null"), "");
  const std::string shown = said_by("LC_ALL=C.UTF-8 MANWIDTH=100 man -l " + path + " | cat");
  for (const std::string_view part : {"wirecall call METHOD", "--timeout DURATION", "EXIT STATUS", "WIRECALL_TOKEN"})
    EXPECT_NE(shown.find(part), std::string::npos) << part;
}

TEST(Manual, text_that_looks_like_a_request_is_text) {
  CommandText command{.name = "one",
                      .does = "Does it",
                      .usage = "wirecall one",
                      .footer = ".so /etc/passwd\n'tis \\fB\n",
                      .flags = {},
                      .choices = {}};
  const std::vector<CommandText> commands{
      CommandText{.name = "wirecall", .does = {}, .usage = {}, .footer = {}, .flags = {}, .choices = {}}, command};
  const std::string page = manual_page(commands, "1.2.3");
  EXPECT_NE(page.find("\n\\&.so /etc/passwd\n\\&'tis \\efB\n"), std::string::npos) << page;
  EXPECT_NE(page.find("wirecall 1.2.3"), std::string::npos);
}

TEST(Help, is_that_of_the_command_that_is_named) {
  const Ended call = run({"help", "call"});
  EXPECT_EQ(call.output, run({"call", "--help"}).output);
  EXPECT_EQ(call.status, 0);
  EXPECT_EQ(run({"help"}).output, run({"--help"}).output);
  const Ended unknown = run({"help", "cal"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(unknown.error.starts_with("wirecall: there is no command cal; did you mean call?")) << unknown.error;
}

TEST(Help, is_shown_where_no_command_is_named) {
  const Ended none = run({});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.output, "");
  EXPECT_EQ(none.error, run({"--help"}).output);
}

}  // namespace
}  // namespace wirecall::cli
