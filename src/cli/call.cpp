// See call.hpp.
#include "cli/call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "base/printable.hpp"
#include "cli/arguments.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "wirecall/client.hpp"
#include "wirecall/error.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

// The exit status for an error that this process made: no response came, or none that can be read.
int exit_of(const Error& error) {
  if (error.code() == static_cast<int>(ErrorCode::timeout)) return kTimeout;
  if (error.code() == static_cast<int>(ErrorCode::provider_lost)) return kCannotConnect;
  return kRpcError;
}

// The exit status for an error that the server answered with. A call's time is known to both sides, and either may be
// the first to notice that it is up.
int exit_of_answer(const Error& error) {
  return error.code() == static_cast<int>(ErrorCode::timeout) ? kTimeout : kRpcError;
}

void complain_of(const Error& error) {
  std::string line = fmt::format("{} {}", bold(fmt::format("error {}:", error.code())), printable(error.message()));
  if (!error.data().empty()) line += " " + printable(error.data());
  tell(line + '\n');
}

/// What is left of the time, where there is one.
using Left = std::optional<milliseconds>;

/// What is done with the client of the first server that can be connected to, and with the params' JSON text.
using Use = std::function<int(Client&, const std::string& params, Left left)>;

int with_server(const CallOptions& options, const Use& use) {
  const auto params = params_of_call(options.method, options.words, read_file);
  if (!params) {
    complain(params.error());
    return kUsage;
  }
  const auto begun = steady_clock::now();
  const auto left = [&]() -> Left {
    if (!options.timeout) return {};
    const auto passed = std::chrono::floor<milliseconds>(steady_clock::now() - begun);
    return std::max(*options.timeout - passed, milliseconds{1});
  };
  auto urls_left = static_cast<std::int64_t>(options.urls.size());
  for (const std::string& url : options.urls) {
    try {
      ClientOptions client_options = options.client;
      if (const Left time = left()) {
        client_options.call_timeout_ms = static_cast<std::uint32_t>(time->count());
        // A server that does not answer leaves time to those behind it.
        client_options.connect_timeout_ms =
            static_cast<std::uint32_t>(std::max(*time / urls_left--, milliseconds{1}).count());
      }
      Client client{url, client_options};
      client.connect();
      return use(client, *params, left());
    } catch (const ConnectionError& error) {
      complain(error.what());
    } catch (const std::invalid_argument& error) {
      complain(error.what());
      return kUsage;
    }
  }
  return kCannotConnect;
}

// Each result on a line, as soon as it is there.
int print_stream(Client& client, const CallOptions& options, const std::string& params) {
  try {
    for (const Value& item : client.stream_raw<Value>(options.method, params)) {
      if (const int printed = print(item.dump() + '\n'); printed != kSuccess) return printed;
    }
    return kSuccess;
  } catch (const ConnectionError& error) {
    complain_of(error);
    return kCannotConnect;
  } catch (const Error& error) {
    complain_of(error);
    return exit_of_answer(error);
  }
}

}  // namespace

int call(const CallOptions& options) {
  return with_server(options, [&](Client& client, const std::string& params, Left left) -> int {
    if (options.stream) return print_stream(client, options, params);
    const auto response = client.call_for_response(options.method, params, left);
    if (!response) {
      complain_of(response.error());
      return exit_of(response.error());
    }
    const auto& result = response->result;
    if (options.raw) {
      const int printed = print(response->json + '\n');
      return printed != kSuccess || result ? printed : exit_of_answer(result.error());
    }
    if (result) return print(*result + '\n');
    complain_of(result.error());
    return exit_of_answer(result.error());
  });
}

int notify(const CallOptions& options) {
  return with_server(options, [&](Client& client, const std::string& params, Left left) -> int {
    const auto sent = client.notify_raw(options.method, params, left);
    if (sent) return kSuccess;
    complain_of(sent.error());
    return exit_of(sent.error());
  });
}

}  // namespace wirecall::cli
