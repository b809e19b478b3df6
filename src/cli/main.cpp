// The command `wirecall`: the list of its subcommands, each of which has a file of its own, and what `serve` may be
// told.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <fmt/core.h>
#include <malloc.h>

#include "base/printable.hpp"
#include "cli/command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/python_program.hpp"
#include "cli/commands/serve.hpp"
#include "cli/config/config_file.hpp"
#include "cli/config/flags.hpp"
#include "cli/config/serve_config.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "wirecall/reflect.hpp"

using namespace wirecall::cli;

constexpr const char* kServeUsage = "[FILE.py[:NAME] [--workers N]]";
constexpr const char* kServeFooter =
    "With FILE.py it serves the wirecall.Server of a Python program, the one named app or NAME, by N processes; a "
    "module's\nname will do as well. wirecall serve FILE.py --help tells its options.\n\n"
    "Examples:\n"
    "  wirecall serve --demo\n"
    "  wirecall serve -c wirecall.toml\n"
    "  wirecall serve calc.py --workers 4\n\n";

/// Refuses a first word that is neither a command nor a flag of `wirecall` itself.
static void require_known(const CLI::App& app, const std::string& arg) {
  if (arg.starts_with('-')) {
    const std::string name = arg.substr(0, arg.find('='));
    const auto is_it = [&](const CLI::Option* option) { return option->check_name(name); };
    if (!std::ranges::any_of(app.get_options(), is_it)) refuse_unexpected(app, {arg});
    return;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::ranges::find(names, arg) == names.end()) throw UsageError{unknown_command(arg, names)};
}

/// The parser's own, but of a flag whose value is neither true nor false: all others check theirs.
static std::string words_of(const CLI::ParseError& error) {
  std::string text = error.what();
  constexpr std::string_view kBegin = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (!text.starts_with(std::string{kBegin} + "--") || equals == std::string::npos) return text;
  const std::string flag = text.substr(kBegin.size(), equals - kBegin.size());
  return fmt::format("{}: {} is {}: give true or false", flag, flag.substr(2),
                     wirecall::to_json(wirecall::printable(text.substr(equals + 3))));
}

static int run(int argc, char** argv) {
  if (const std::span args{argv + 1, argv + argc}; is_python_program(args)) return exec_python(args);
  CLI::App app{"A JSON-RPC 2.0 server and client.", "wirecall"};
  app.set_version_flag("--version", std::string{"wirecall "} + WIRECALL_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.footer(kExitCodes);

  ServeOptions serving;
  serving.version = WIRECALL_VERSION;
  serving.command.assign(argv, argv + argc);
  if (std::string_view{argv[0]}.find('/') != std::string_view::npos) serving.program = argv[0];
  CLI::App* serve_command = app.add_subcommand(
      "serve", "Serve in the foreground until Ctrl-C; serve FILE.py: the methods of a Python program");
  set_usage(*serve_command, kServeUsage);
  serve_command->footer(kServeFooter + std::string{kExitCodes});
  std::string workers;
  serve_command->add_option("--workers", workers, "With FILE.py: processes that share the endpoints")->type_name("N");
  bool reload = false;
  serve_command->add_flag("--reload", reload, "With FILE.py: start it anew when a Python file in its folder changes");
  serve_command->add_flag("--demo", serving.demo, "Serve the demo methods: subtract, sum, echo, sleep, fail, count");
  serve_command
      ->add_option("--module", serving.modules,
                   "A shared library that adds methods (docs/c.md); the flag once for each")
      ->type_name("PATH")
      ->allow_extra_args(false);
  serve_command->add_flag("--insecure", serving.insecure,
                          "Listen where other machines can connect without authentication");
  serve_command->add_flag("--replace", serving.replace,
                          "Take over from the server of the same endpoints, which ends; without one, just serve");
  serve_command
      ->add_option("--restart-ms", serving.restart_ms,
                   "Time that a process which takes over (SIGUSR2, --replace) has to come up [30000]")
      ->type_name("MS")
      ->check(CLI::Range(1U, 86'400'000U).description(""));
  serve_command->allow_extras();
  bool print_config = false;
  serve_command->add_flag("--print-config", print_config,
                          "Print all options as TOML, with the values in force, and exit");
  const ServeConfig serve_config{*serve_command};

  std::vector<std::unique_ptr<Command>> commands;
  for (const auto& declare :
       {call_command, notify_command, pub_command, sub_command, reply_command, queue_command, ls_command,
        describe_command, clients_command, cluster_command, stats_command, top_command, tap_command, bench_command,
        context_command, completion_command, man_command, help_command})
    commands.push_back(declare(app));

  if (argc == 1) {
    print_stderr(app.help());
    return kUsage;
  }

  // Whatever stands behind -- is an ARG.
  char** const end = argv + argc;
  char** const mark = std::find_if(argv, end, [](const char* arg) { return std::string_view{arg} == "--"; });
  const std::vector<std::string> behind_mark(mark == end ? end : mark + 1, end);
  try {
    require_known(app, argv[1]);
    std::vector<std::string> args = with_truths({argv + 1, mark});
    std::ranges::reverse(args);  // as the parser takes them
    app.parse(std::move(args));
    if (serve_command->parsed()) {
      std::vector<std::string> unexpected = serve_command->remaining();
      unexpected.insert(unexpected.end(), behind_mark.begin(), behind_mark.end());
      if (asks_for_module(unexpected)) return exec_python({argv + 1, end});
      if (const std::string module = missing_module(unexpected); !module.empty() && !serving.demo)
        throw UsageError{"there is no module " + module + ": name one, or a file that ends in .py"};
      if (!unexpected.empty()) refuse_unexpected(*serve_command, unexpected);
      if (!workers.empty())
        throw UsageError{"--workers is for a Python program: wirecall serve FILE.py --workers " + workers};
      if (reload) throw UsageError{"--reload is for a Python program: wirecall serve FILE.py --reload"};
      if (!serve_config.path().empty()) block_sighup();  // one that comes from now on is for the server
      serving.server = require(serve_config.load());
      if (print_config) return print(toml_of_options(serving.server));
      if (!serve_config.path().empty() || !serving.server.principals_file.empty() || serving.server.tls.on())
        serving.reload = [&] { return serve_config.load(); };
      return serve(serving);
    }
    const auto given = std::ranges::find_if(commands, [](const auto& command) { return command->parsed(); });
    return (*given)->run(behind_mark);
  } catch (const CLI::ParseError& error) {
    if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) return print(app.help());
    if (error.get_exit_code() == 0) return print(error.what() + std::string{"\n"});  // the version
    std::string help = "wirecall ";
    for (const CLI::App* command : app.get_subcommands()) help += command->get_name() + ' ';
    print_error(fmt::format("{}; {}--help tells more", words_of(error), help));
    return kUsage;
  } catch (const UsageError& error) {
    print_error(error.text);
    return kUsage;
  }
}

/// The memory of large messages goes back to the system when they are gone. Left to itself the C library keeps as much
/// as it ever needed at once: the sizes from which it does otherwise grow with what it has seen. From 64 KiB on each
/// block is mapped by itself, which costs messages of 50 to 260 KB nothing that can be measured; at 1 MiB the blocks of
/// many that come at a time lie among each other, and most of them stay.
static void give_back_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 64 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
#endif
}

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  give_back_memory();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    print_error(error.what());
    return kUsage;
  }
}
