// The command `wirecall`: what its command line may say, and nothing else; each subcommand has a file of its own.
// This is the one place that reads the environment.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <expected>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/edit_distance.hpp"
#include "cli/arguments.hpp"
#include "cli/bench.hpp"
#include "cli/call.hpp"
#include "cli/config_file.hpp"
#include "cli/files.hpp"
#include "cli/flags.hpp"
#include "cli/serve.hpp"
#include "cli/serve_config.hpp"
#include "cli/terminal.hpp"

namespace {

using namespace wirecall::cli;

constexpr const char* kExitCodes =
    "Results go to stdout, all else to stderr. Exit status: 0, 1 a call was answered with an error,\n"
    "2 the command line is wrong, 3 no connection, 4 no answer in time, 130 ended by Ctrl-C (serve: by\n"
    "a second one), 143 by SIGTERM.";

constexpr const char* kArgumentsHelp =
    "ARGs are all positional or all by name:\n"
    "  42  true  [1,2]  '{\"a\":1}'  text    what is JSON is that value, anything else a string\n"
    "  name=value                        the same, by name\n"
    "  name=@file                        the text of a file\n"
    "  name:type=value                   int, float, str, bool, json, bytes (of the value), file (its bytes)\n"
    "Behind -- every word is an ARG, also one that begins with a dash.\n\n";

constexpr const char* kCallExamples =
    "Examples:\n"
    "  wirecall call subtract 42 23\n"
    "  wirecall call subtract minuend=42 subtrahend=23\n"
    "  wirecall call echo value:str=42 --url tcp://127.0.0.1:8545 --timeout 200ms\n"
    "  wirecall call subtract 42 23 --url http://127.0.0.1:8545/rpc\n"
    "  wirecall call --stream count 5\n\n";

constexpr const char* kBenchHelp =
    "Without --rate each connection keeps -p calls in flight. With it, calls are due at that rate whatever the\n"
    "server does, and a call's time counts from when it was due.\n\n"
    "Examples:\n"
    "  wirecall bench subtract 42 23 -c 32 -p 16\n"
    "  wirecall bench echo '\"hello\"' -c 10 --rate 5000 -z 1m --hdr latency.hgrm\n\n";

/// What the library has found wrong with a command line that CLI11 took.
struct UsageError {
  std::string text;
};

template <class T>
T require(std::expected<T, std::string> value, const std::string& what = {}) {
  if (!value) throw UsageError{what.empty() ? value.error() : what + ": " + value.error()};
  return *std::move(value);
}
void require(const std::expected<void, std::string>& done) {
  if (!done) throw UsageError{done.error()};
}

/// The guess that follows a word that is not known, or `else_this`.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names, std::string_view else_this) {
  const std::string_view nearest = wirecall::nearest_of(word, names);
  return nearest.empty() ? std::string{else_this} : fmt::format("; did you mean {}?", nearest);
}

/// Whether `word`, where a command is expected, is none: then it is said what there is.
bool unknown_command(const CLI::App& app, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::ranges::find(names, word) != names.end()) return false;
  complain(fmt::format("there is no command {}{} Commands are {}; wirecall --help tells more", word,
                       did_you_mean(word, names, "."), fmt::join(names, ", ")));
  return true;
}

/// Refuses the first word that a command knows nothing of.
[[noreturn]] void refuse_unexpected(const CLI::App& command, const std::vector<std::string>& words) {
  const auto option = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  const std::string help = fmt::format(" wirecall {} --help tells more", command.get_name());
  if (option == words.end()) {
    throw UsageError{fmt::format("{} takes no argument {};{}", command.get_name(), words.front(), help)};
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    for (const std::string& long_name : known->get_lnames()) names.push_back("--" + long_name);
  }
  throw UsageError{fmt::format("there is no option {}{}{}", name, did_you_mean(name, names, ";"), help)};
}

/// CLI11 does not know of the ARGs, because its lists would take [1,2] apart.
class CallFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string name) const override {
    return "Usage: " + name + " METHOD [ARG | name=value | name:type=value | name=@file]... [OPTIONS]\n";
  }
};

/// A subcommand that sends a method and ARGs to a server.
class MethodCommand {
 public:
  MethodCommand(CLI::App& app, const char* name, const char* does, const std::string& examples)
      : app_(app.add_subcommand(name, does)) {
    app_->add_option("METHOD", method, "The method's name")->required()->type_name("");
    app_->add_option("--url", urls,
                     "The server; when repeated, the first that can be connected to. Else $WIRECALL_URL (several with "
                     "commas between them), else tcp://127.0.0.1:8545")
        ->type_name("URI")
        ->allow_extra_args(false);
    app_->allow_extras();
    app_->formatter(std::make_shared<CallFormatter>());
    app_->footer(std::string{kArgumentsHelp} + examples + kExitCodes);
  }

  [[nodiscard]] CLI::App* operator->() const { return app_; }
  [[nodiscard]] CLI::App& app() const { return *app_; }

  /// After parsing. `behind_mark` is what stood behind --. Throws for an option that does not exist.
  void finish(const std::vector<std::string>& behind_mark) {
    words = app_->remaining();
    for (const std::string& word : words) {
      const bool negative_number = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
      if (word.size() > 1 && word.front() == '-' && !negative_number) {
        refuse_unexpected(*app_, {word});
      }
    }
    words.insert(words.end(), behind_mark.begin(), behind_mark.end());
    if (const char* url = std::getenv("WIRECALL_URL"); urls.empty() && url != nullptr) urls = urls_of(url);
    if (urls.empty()) urls.emplace_back("tcp://127.0.0.1:8545");
  }

  std::string method;
  std::vector<std::string> urls;
  std::vector<std::string> words;

 private:
  CLI::App* app_;
};

/// `call` and `notify`.
class CallCommand : public MethodCommand {
 public:
  CallCommand(CLI::App& parent, const char* name, const char* does, const std::string& examples)
      : MethodCommand(parent, name, does, examples), flags_(app()) {
    app()
        .add_option(
            "--timeout", timeout_,
            "How long to wait in all, to connect and for the answer, as 200ms or 1.5s; of a stream, for each item")
        ->type_name("DURATION");
  }

  CallOptions options() const {
    CallOptions options{.method = method, .words = words, .urls = urls, .client = {}};
    require(flags_.apply(options.client));
    if (!timeout_.empty()) {
      options.timeout = require(duration_of(timeout_), "--timeout");
    }
    return options;
  }

 private:
  OptionFlags<wirecall::ClientOptions> flags_;
  std::string timeout_;
};

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
  serve_command->add_flag("--insecure", serving.insecure, "Listen also where other machines can connect");
  serve_command->allow_extras();
  bool print_config = false;
  serve_command->add_flag("--print-config", print_config,
                          "Print all options as TOML, with the values in force, and exit");
  const ServeConfig serve_config{*serve_command};

  CallCommand call_command{app, "call", "Call a method and print its result", kCallExamples};
  bool raw = false;
  bool stream = false;
  CLI::Option* const raw_flag = call_command->add_flag("--raw", raw, "Print the whole response");
  call_command->add_flag("--stream", stream, "Print each of many results as it comes")->excludes(raw_flag);
  CallCommand notify_command{app, "notify", "Send a notification: nobody answers it", ""};

  MethodCommand bench_command{app, "bench", "Load a server with calls and print rate and latency", kBenchHelp};
  BenchOptions benching;
  std::string duration;
  std::string warm_up;
  bench_command->add_option("-c,--connections", benching.connections, "Connections; 1 unless given")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  bench_command->add_option("-p,--pipeline", benching.pipeline, "Calls in flight on each; 1 unless given")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  bench_command->add_option("-z,--duration", duration, "How long, as 10s or 1m; 10s unless given")
      ->type_name("DURATION");
  bench_command->add_option("--warm-up", warm_up, "How long, at first, nothing is measured; 300ms unless given")
      ->type_name("DURATION");
  bench_command->add_option("--rate", benching.rate, "Calls a second in all; as many as are answered unless given")
      ->type_name("R")
      ->check(CLI::Range(0.001, 1e9));
  bench_command->add_flag("--json", benching.json, "Print one JSON object");
  bench_command
      ->add_option("--hdr", benching.hdr_path, "Write the distribution there, as HdrHistogram's plotters read it")
      ->type_name("FILE");

  if (argc > 1 && *argv[1] != '-' && unknown_command(app, argv[1])) return kUsage;

  // Whatever stands behind -- is an ARG.
  char** const end = argv + argc;
  char** const mark = std::find_if(argv, end, [](const char* word) { return std::string_view{word} == "--"; });
  const std::vector<std::string> behind_mark(mark == end ? end : mark + 1, end);
  try {
    app.parse(static_cast<int>(mark - argv), argv);
    if (serve_command->parsed()) {
      std::vector<std::string> unexpected = serve_command->remaining();
      unexpected.insert(unexpected.end(), behind_mark.begin(), behind_mark.end());
      if (!unexpected.empty()) refuse_unexpected(*serve_command, unexpected);
      serving.server = require(serve_config.load());
      if (print_config) return print(toml_of_options(serving.server));
      return serve(serving);
    }
    if (call_command->parsed()) {
      call_command.finish(behind_mark);
      CallOptions calling = call_command.options();
      calling.raw = raw;
      calling.stream = stream;
      return call(calling);
    }
    if (notify_command->parsed()) {
      notify_command.finish(behind_mark);
      return notify(notify_command.options());
    }
    bench_command.finish(behind_mark);
    benching.method = bench_command.method;
    benching.words = bench_command.words;
    benching.urls = bench_command.urls;
    if (!duration.empty()) benching.duration = require(duration_of(duration), "-z/--duration");
    if (!warm_up.empty()) benching.warm_up = require(duration_of(warm_up), "--warm-up");
    return bench(benching);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help or version
    complain(error.what() + std::string{"; wirecall --help tells more"});
    return kUsage;
  } catch (const UsageError& error) {
    complain(error.text);
    return kUsage;
  }
}

/// The memory of large messages goes back to the system when they are gone. Left to itself the C library keeps as much
/// as it ever needed at once: the sizes from which it does otherwise grow with what it has seen. From 64 KiB on each
/// block is mapped by itself, which costs messages of 50 to 260 KB nothing that can be measured; at 1 MiB the blocks of
/// many that come at a time lie among each other, and most of them stay.
void give_back_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 64 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  give_back_memory();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    complain(error.what());
    return kUsage;
  }
}
