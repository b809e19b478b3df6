// `wirecall bench`: loads a server with calls of one method and prints how many it answered and how long they took.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/core.h>
#include <stdexcept>
#include <sys/resource.h>

#include "base/printable.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/load/load.hpp"
#include "cli/terminal.hpp"
#include "cli/view/table.hpp"
#include "options/rows.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

constexpr std::chrono::milliseconds kEveryMin{10};

struct BenchOptions {
  LoadOptions load{.endpoint = Endpoint{"tcp://127.0.0.1"}, .method = {}, .params = {}};
  std::vector<std::string> urls;     ///< at least one; the first that can be connected to is loaded
  bool json = false;                 ///< one JSON object instead of a table
  std::chrono::nanoseconds every{};  ///< what is told of each such interval; 0 for nothing
  std::string hdr_path;              ///< where the distribution is written; empty for nowhere
};

struct Quantile {
  std::string_view name;
  double share;
};
constexpr std::array<Quantile, 4> kQuantiles{{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>{time}.count(); }
double as_double(std::uint64_t value) { return static_cast<double>(value); }

// Each connection is a descriptor; a process may have as many as its hard limit says.
void allow_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string latency_line(const Histogram& latency) {
  if (latency.count() == 0) return "none: no call has been answered with a result";
  std::string line;
  for (const Quantile& quantile : kQuantiles) {
    line += fmt::format("{} {}   ", quantile.name, time_text(as_double(latency.at(quantile.share))));
  }
  return line + "max " + time_text(as_double(latency.max()));
}

void show_progress(const LoadResult& so_far) {
  print_stderr(fmt::format("\r{:4.0f} s   {:.0f} calls/s   {}\x1b[K", seconds(so_far.elapsed), so_far.rate(),
                           latency_line(so_far.latency)));
}

// One line each, of as many columns as the heading has.
constexpr std::string_view kIntervalHeading = "      time      calls   failures       mean        max        min\n";

std::string interval_line(const LoadInterval& interval) {
  const auto time = [&](std::chrono::nanoseconds one) {
    return interval.timed == 0 ? std::string{"-"} : time_text(as_double(static_cast<std::uint64_t>(one.count())));
  };
  return fmt::format("{:>8.1f} s {:>10} {:>10} {:>10} {:>10} {:>10}\n", seconds(interval.end), interval.answered,
                     interval.failed, interval.timed == 0 ? "-" : time_text(interval.mean_ns()), time(interval.max),
                     time(interval.min));
}

std::string interval_json(const LoadInterval& interval) {
  std::string text = fmt::format(R"({{"end":{:.3f},"seconds":{:.3f},"calls":{},"failures":{},"latency_us":)",
                                 seconds(interval.end), seconds(interval.length), interval.answered, interval.failed);
  if (interval.timed == 0) return text + "null}\n";
  const auto us = [](std::chrono::nanoseconds time) { return std::chrono::duration<double, std::micro>{time}.count(); };
  return text +
         fmt::format(R"({{"mean":{:.3f},"max":{:.3f},"min":{:.3f}}}}})", interval.mean_ns() / 1e3, us(interval.max),
                     us(interval.min)) +
         '\n';
}

std::string table(const BenchOptions& options, const std::string& url, const LoadResult& result) {
  std::string text =
      fmt::format("{} at {}: {} connections with {} calls in flight each, {:.1f} s\n", printable(options.load.method),
                  url, options.load.connections, options.load.pipeline, seconds(result.elapsed));
  text += fmt::format("  rate        {:.0f} calls/s", result.rate());
  text += options.load.rate > 0 ? fmt::format(" of {:.0f} due\n", options.load.rate) : "\n";
  text += fmt::format("  latency     {}\n", latency_line(result.latency));
  text += fmt::format("  errors      {}", result.errors);
  for (const auto& [code, count] : result.errors_by_code) text += fmt::format("   {}: {}", code, count);
  text += '\n';
  if (result.strays != 0)
    text += fmt::format("  strays      {} responses that no call was waiting for; the errors include them\n",
                        result.strays);
  if (result.unanswered != 0) text += fmt::format("  unanswered  {}\n", result.unanswered);
  if (result.unsent != 0) {
    text +=
        fmt::format("  unsent      {} were due while all calls in flight were taken: raise -c or -p\n", result.unsent);
  }
  return text;
}

std::string json(const BenchOptions& options, const std::string& url, const LoadResult& result) {
  std::string text = fmt::format(R"({{"method":{},"url":{},"connections":{},"pipeline":{},"seconds":{:.3f},)",
                                 to_json(options.load.method), to_json(url), options.load.connections,
                                 options.load.pipeline, seconds(result.elapsed));
  if (options.load.rate > 0) text += fmt::format(R"("rate_due":{},)", options.load.rate);
  text += fmt::format(R"("calls":{},"rate":{:.1f},"errors":{},"errors_by_code":{{)", result.answered, result.rate(),
                      result.errors);
  for (const auto& [code, count] : result.errors_by_code) text += fmt::format(R"("{}":{},)", code, count);
  if (text.back() == ',') text.pop_back();
  text += fmt::format(R"(}},"strays":{},"unanswered":{},"unsent":{},"latency_us":)", result.strays, result.unanswered,
                      result.unsent);
  if (result.latency.count() == 0) return text + "null}\n";
  text += fmt::format(R"({{"mean":{:.3f})", result.latency.mean() / 1e3);
  for (const Quantile& quantile : kQuantiles) {
    text += fmt::format(R"(,"{}":{:.3f})", quantile.name, as_double(result.latency.at(quantile.share)) / 1e3);
  }
  return text + fmt::format(R"(,"max":{:.3f}}}}})", as_double(result.latency.max()) / 1e3) + '\n';
}

int report(const BenchOptions& options, const std::string& url, const LoadResult& result, const Interrupt& interrupt,
           std::optional<OutputFile>& hdr) {
  if (int status = print(options.json ? json(options, url, result) : table(options, url, result)); status != kSuccess) {
    return status;
  }
  if (hdr) {
    if (const auto written = hdr->write(cli::hdr(result.latency)); !written) {
      print_error(written.error());
      return kRpcError;
    }
  }
  if (!result.lost.empty()) {
    print_error(result.lost);
    return result.refused ? kRpcError : kCannotConnect;
  }
  if (interrupt.signal() != 0) {
    print_error(interrupt.name() + ": these are the results until then");
    return interrupt.status();
  }
  if (result.errors != 0) return kRpcError;
  return result.unanswered != 0 ? kTimeout : kSuccess;
}

int bench(const BenchOptions& options) {
  std::optional<OutputFile> hdr;
  if (!options.hdr_path.empty()) {
    auto opened = OutputFile::open(options.hdr_path);
    if (!opened) {
      print_error(opened.error());
      return kUsage;
    }
    hdr = *std::move(opened);
  }
  allow_descriptors();
  for (const std::string& url : options.urls) {
    const auto endpoint = Endpoint::parse(url);
    if (!endpoint) {
      print_error(endpoint.error());
      return kUsage;
    }
    LoadOptions load = options.load;
    load.endpoint = *endpoint;
    const bool progress = on_terminal() && options.every == std::chrono::nanoseconds{0};
    if (progress) load.progress = show_progress;
    int printed = kSuccess;
    load.interval_length = options.every;
    load.interval = [&](const LoadInterval& interval) {
      if (printed == kSuccess) printed = print(options.json ? interval_json(interval) : interval_line(interval));
    };
    // Until all is connected there is nothing to show, and a signal ends the process.
    std::optional<Interrupt> interrupt;
    load.connected = [&] {
      interrupt.emplace();
      if (options.every != std::chrono::nanoseconds{0} && !options.json) printed = print(kIntervalHeading);
    };
    load.stop = [&] { return printed != kSuccess || interrupt->signal() != 0; };
    std::optional<LoadResult> result;
    try {
      result = run_load(load);
    } catch (const std::runtime_error& error) {
      print_error(error.what());
      continue;
    } catch (const std::invalid_argument& error) {  // of an option, or a file that one names
      print_error(error.what());
      return kUsage;
    }
    if (progress) print_stderr("\r\x1b[K");
    if (printed != kSuccess) return printed;
    return report(options, url, *result, *interrupt, hdr);
  }
  return kCannotConnect;
}

class BenchCommand final : public MethodCommand {
 public:
  explicit BenchCommand(CLI::App& parent);

 private:
  int run() override;

  BenchOptions options_;
  Duration duration_;
  Duration warm_up_;
  Duration every_;
  std::optional<ServerFlags> server_;
};

BenchCommand::BenchCommand(CLI::App& parent)
    : MethodCommand(
          parent,
          {.name = "bench",
           .does = "Load a server with calls and print rate and latency",
           .footer = "Without --rate each connection keeps -p calls in flight (closed loop). With --rate calls are due "
                     "at that\n"
                     "rate, however slowly the server answers, and a call's latency counts from when it was due.\n\n"
                     "Examples:\n"
                     "  wirecall bench subtract 42 23 -c 32 -p 16\n"
                     "  wirecall bench echo '\"hello\"' -c 10 --rate 5000 -z 1m --hdr latency.hgrm\n"
                     "  wirecall bench echo '\"hello\"' -p 10 -z 1m --every 1s\n\n"}) {
  add_count("-c,--connections", options_.load.connections, "Connections (default: 1)", 1, 100'000);
  add_count("-p,--pipeline", options_.load.pipeline, "Calls in flight on each connection (default: 1)", 1, 100'000);
  add_duration("-z,--duration", duration_, "Duration of the measurement, as 10s or 1m (default: 10s)");
  add_duration("--every", every_,
               "Print a line of each interval of that duration, as 1s: its calls, failures, latency");
  add_duration("--warm-up", warm_up_, "Duration of the calls before the measurement (default: 300ms)");
  add_value("--rate", options_.load.rate, "R",
            "Calls per second on all connections together (default: as many as are answered)")
      ->check(number("rate", 0.001, 1e9));
  app().add_flag("--json", options_.json, "Print one JSON object; with --every one for each interval before it");
  add_value("--hdr", options_.hdr_path, "FILE",
            "Write the latency distribution to this file, in HdrHistogram's text format");
  add_value("--token", options_.load.token, "TOKEN", "The secret by which the client authenticates");
  const auto add_option = [this](std::string_view name, std::string& value) {
    const net::OptionRow& row = *net::find_option(name);
    add_value(net::flag_of(row), value, "TEXT", std::string{row.doc});
  };
  ClientTlsOptions& tls = options_.load.tls;
  add_option("cafile", options_.load.cafile);
  add_option("proxy", options_.load.proxy);
  add_option("tls.pin", tls.pin);
  add_option("tls.client_cert", tls.client_cert);
  add_option("tls.client_key", tls.client_key);
  const net::OptionRow& no_verify = *net::find_option("tls.no_verify");
  add_value(net::flag_of(no_verify), tls.no_verify, "true or false", std::string{no_verify.doc});
  server_.emplace(app());
}

int BenchCommand::run() {
  options_.load.method = method();
  options_.load.params = params_json();
  const SavedContext server = server_->server();
  options_.urls = server.urls;
  options_.load.token = token_for(server, std::move(options_.load.token));
  read_durations();
  if (duration_) options_.load.duration = *duration_;
  if (warm_up_) options_.load.warm_up = *warm_up_;
  if (every_) {
    options_.every = *every_;
    if (options_.every < kEveryMin) throw UsageError{"--every: at least 10ms"};
  }
  return bench(options_);
}

}  // namespace

std::unique_ptr<Command> bench_command(CLI::App& parent) { return std::make_unique<BenchCommand>(parent); }

}  // namespace wirecall::cli
