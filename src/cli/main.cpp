// The command `wirecall`: what its command line may say, and nothing else; each subcommand has a file of its own.
// This is the one place that reads the environment.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/edit_distance.hpp"
#include "base/printable.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/serve.hpp"
#include "cli/terminal.hpp"

namespace {

using namespace wirecall::cli;
using wirecall::edit_distance;
using wirecall::is_near;
using wirecall::printable;

constexpr const char* kExitCodes =
    "Results go to stdout, all else to stderr. Exit status: 0, 1 the call was answered with an error,\n"
    "2 the command line is wrong, 3 no connection, 4 no answer in time.";

constexpr const char* kCallHelp =
    "ARGs are all positional or all by name:\n"
    "  42  true  [1,2]  '{\"a\":1}'  text    what is JSON is that value, anything else a string\n"
    "  name=value                        the same, by name\n"
    "  name=@file                        the text of a file\n"
    "  name:type=value                   int, float, str, bool, json, bytes (of the value), file (its bytes)\n"
    "Behind -- every word is an ARG, also one that begins with a dash.\n\n"
    "Examples:\n"
    "  wirecall call subtract 42 23\n"
    "  wirecall call subtract minuend=42 subtrahend=23\n"
    "  wirecall call echo value:str=42 --url tcp://127.0.0.1:8545 --timeout 200ms\n\n";

/// CLI11 does not know of the ARGs, because its lists would take [1,2] apart.
class CallFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string name) const override {
    return "Usage: " + name + " METHOD [ARG | name=value | name:type=value | name=@file]... [OPTIONS]\n";
  }
};

/// The words behind METHOD that are no options. Throws for an option that does not exist.
std::vector<std::string> words_of(const CLI::App& command) {
  std::vector<std::string> words = command.remaining();
  for (const std::string& word : words) {
    const bool negative_number = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
    if (word.size() > 1 && word.front() == '-' && !negative_number) {
      throw CLI::ExtrasError(command.get_name(), {word});
    }
  }
  return words;
}

/// Whether `word`, where a command is expected, is none: then it is said what there is.
bool unknown_command(const CLI::App& app, std::string_view word) {
  const CLI::App* nearest = nullptr;
  std::string names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string& name = command->get_name();
    if (word == name) return false;
    if (nearest == nullptr || edit_distance(word, name) < edit_distance(word, nearest->get_name())) nearest = command;
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string text = "there is no command " + printable(word) + ".";
  if (nearest != nullptr && is_near(word, nearest->get_name())) {
    text += " Did you mean " + nearest->get_name() + "?";
  }
  complain(text + " Commands are " + names + "; wirecall --help tells more");
  return true;
}

int run(int argc, char** argv) {
  CLI::App app{"A JSON-RPC 2.0 server and client.", "wirecall"};
  app.set_version_flag("--version", std::string{"wirecall "} + WIRECALL_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.footer(kExitCodes);

  ServeOptions serving;
  serving.version = WIRECALL_VERSION;
  if (std::string_view{argv[0]}.find('/') != std::string_view::npos) serving.program = argv[0];
  CLI::App* serve_command = app.add_subcommand("serve", "Serve in the foreground until Ctrl-C");
  serve_command->add_flag("--demo", serving.demo, "Serve the demo methods: subtract, sum, echo, sleep, fail, count");
  serve_command->add_option("--listen", serving.listen, "Where: tcp://HOST:PORT, port 0 for any; may be repeated")
      ->type_name("URI")
      ->allow_extra_args(false);
  serve_command->add_option("--port", serving.port, "The same as --listen tcp://127.0.0.1:PORT")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535));
  serve_command->add_flag("--insecure", serving.insecure, "Listen also where other machines can connect");
  serve_command->footer("Without --listen and --port: tcp://127.0.0.1:8545.");

  CallOptions calling;
  std::string timeout;
  CLI::App* call_command = app.add_subcommand("call", "Call a method and print its result");
  call_command->add_option("METHOD", calling.method, "The method's name")->required()->type_name("");
  call_command
      ->add_option("--url", calling.urls,
                   "The server; when repeated, the first that can be connected to. Else $WIRECALL_URL, else "
                   "tcp://127.0.0.1:8545")
      ->type_name("URI")
      ->allow_extra_args(false);
  call_command->add_option("--timeout", timeout, "How long to wait, as 200ms or 1.5s; 30s unless given")
      ->type_name("DURATION");
  call_command->add_flag("--raw", calling.raw, "Print the whole response");
  call_command->allow_extras();
  call_command->formatter(std::make_shared<CallFormatter>());
  call_command->footer(std::string{kCallHelp} + kExitCodes);

  if (argc > 1 && *argv[1] != '-' && unknown_command(app, argv[1])) return kUsage;

  // Whatever stands behind -- is an ARG.
  char** const end = argv + argc;
  char** const mark = std::find_if(argv, end, [](const char* word) { return std::string_view{word} == "--"; });
  const std::vector<std::string> behind_mark(mark == end ? end : mark + 1, end);
  try {
    app.parse(static_cast<int>(mark - argv), argv);
    if (!call_command->parsed() && !behind_mark.empty()) throw CLI::ExtrasError("wirecall", behind_mark);
    if (serve_command->parsed()) return serve(serving);
    calling.words = words_of(*call_command);
    calling.words.insert(calling.words.end(), behind_mark.begin(), behind_mark.end());
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  if (!timeout.empty()) {
    const auto duration = duration_of(timeout);
    if (!duration) {
      complain("--timeout: " + duration.error());
      return kUsage;
    }
    calling.timeout = *duration;
  }
  if (calling.urls.empty()) {
    const char* url = std::getenv("WIRECALL_URL");
    calling.urls.emplace_back(url != nullptr && *url != '\0' ? url : "tcp://127.0.0.1:8545");
  }
  return call(calling);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    complain(error.what());
    return kUsage;
  }
}
